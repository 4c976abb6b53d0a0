#pragma once

#include "app/options/options.hpp"

#include "core/kernels/products/gemm_providers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

/// Options of the small commands, and options that every command has.
namespace mylos::app {

/// Options that only compare reads.
struct CompareArguments {
  /// Command that starts a program on {n} ranks, or on {nodes} nodes with {ranks_per_node} each.
  std::string launcher = "mpirun -n {n}";
  std::vector<ComparedRanks> ranks = {{1}, {2}, {4}};
  std::optional<double> baseline_seconds;  ///< another program's total time on one GPU
};

/// Options that only ask reads.
struct AskArguments {
  std::filesystem::path context;  ///< text that ask answers questions about
};

/// Options that only checkpoint reads.
struct CheckpointArguments {
  bool merges = false;  ///< export: write the model with its adapters in the weights
};

/// Options of tokenize. bench tokenize reads the vocabulary and `cased`, too.
struct TokenizeArguments {
  std::filesystem::path vocabulary;  ///< vocab.txt
  bool cased = false;
  bool offsets = false;
  bool decode = false;  ///< ids to text
};

/// Options that only bench reads.
struct BenchArguments {
  std::string shapes;                  ///< gemm: a model known by its sizes; empty: the task's first one
  std::size_t tokens = 3072;           ///< gemm: rows of the products
  bool breakdown = false;              ///< step: break the time down by kernel
  bool predicts = false;               ///< batch: --plan, predict without running
  std::vector<std::string> providers;  ///< empty: all of this build
};

/// Options that only watch reads.
struct WatchArguments {
  bool once = false;     ///< print once and exit
  double refresh = 2.0;  ///< seconds between updates
};

/// Options that only report reads.
struct ReportArguments {
  std::filesystem::path kernels;                               ///< output of bench step --breakdown --json
  std::filesystem::path batches;                               ///< output of bench batch --json
  std::optional<std::pair<std::size_t, std::size_t>> between;  ///< steps of the two evaluations to compare
};

inline constexpr std::string_view general_options = "Options";  // section of the help

inline Option providers_option() {
  std::vector<Choice> choices;
  for (const std::string& name : built_gemm_providers()) choices.push_back({name, {}});
  const std::string all = describe(choices);
  return unrecorded(parsed_option(
      named("providers", "A,B", general_options, "bench/gemm bench/step",
            "with gemm and step: providers to time, separated by commas: " + all +
                "; default: all that do not round float"),
      "a list, separated by commas, of " + all, MYLOS_FIELD(bench->providers), [choices](std::string_view text) {
        return parse_list<std::string>(text, [&](const std::string& word) { return parse_choice(word, choices); });
      }));
}

inline Option shapes_option(const tasks::TaskKind& task) {
  std::vector<Choice> choices;
  for (const std::string& name : task.known_models()) choices.push_back({name, {}});
  Option option =
      choice_option(named("shapes", "NAME", general_options, "bench/gemm",
                          "with gemm: model whose products are timed if --model is not given: " + describe(choices)),
                    choices, MYLOS_FIELD(bench->shapes));
  option.print = [choices](const Arguments& arguments) -> nlohmann::ordered_json {
    if (!arguments.bench->shapes.empty()) return arguments.bench->shapes;
    return choices.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(choices.front().name);
  };
  return option;
}

inline Option modes_option() {
  Option option = with_help(
      named("modes", "A,B", general_options, "compare bench/batch",
            "sharding strategies to compare, separated by commas, or all; default: all but hybrid"),
      {{"bench",
        "with batch: sharding strategies, separated by commas, or all; default: replicated, and sharded with several "
        "ranks"}});
  option = unrecorded(parsed_option(
      std::move(option), "a list, separated by commas, of " + describe(mode_choices()) + "; or all",
      MYLOS_FIELD(strategies),
      [choices = mode_choices()](std::string_view text) -> std::optional<std::vector<std::string>> {
        if (text == "all") return names_of(choices);
        return parse_list<std::string>(text, [&](const std::string& word) { return parse_choice(word, choices); });
      }));
  option.choices = names_of(mode_choices());
  option.choices.emplace_back("all");
  return option;
}

/// Returns the ranks of "4", or of "2x2": nodes x ranks a node.
inline std::optional<ComparedRanks> parse_ranks(const std::string& word) {
  const CountRange any{1, 1'000'000};
  const std::vector<std::string> parts = split(word, 'x');
  const auto first = parse_count(parts.front(), any), last = parse_count(parts.back(), any);
  if (parts.size() > 2 || !first || !last) return std::nullopt;
  return parts.size() == 1 ? ComparedRanks{*first} : ComparedRanks{*first * *last, *first};
}

inline Option ranks_option() {
  Option option = named("ranks", "N,M", general_options, "compare",
                        "numbers of ranks to compare, separated by commas; 2x4: on 2 nodes with 4 ranks each; default: "
                        "1,2,4");
  option.expects = "a list, separated by commas, of whole numbers, or of nodes x ranks a node: 1,2,2x2";
  option.parse = [](Arguments& arguments, std::string_view text) {
    std::vector<ComparedRanks> ranks;
    for (const std::string& word : split(text, ',')) {
      const auto parsed = parse_ranks(word);
      if (!parsed) return false;
      const auto is_same = [&](const ComparedRanks& other) { return other.name() == parsed->name(); };
      if (std::ranges::none_of(ranks, is_same)) ranks.push_back(*parsed);
    }
    arguments.compare->ranks = std::move(ranks);
    return true;
  };
  return option;
}

inline Option launcher_option() {
  return unrecorded(parsed_option(
      named("launcher", "COMMAND", general_options, "compare",
            "command that starts a program on {n} ranks, such as \"srun -n {n}\", or on {nodes} nodes with "
            "{ranks_per_node} each; default: mpirun -n {n}"),
      "a command with {n} in it, or with {nodes} and {ranks_per_node}", MYLOS_FIELD(compare->launcher),
      [](std::string_view text) {
        const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
        const bool is_told = has("{n}") || (has("{nodes}") && has("{ranks_per_node}"));
        return is_told ? std::optional<std::string>(text) : std::nullopt;
      }));
}

inline Option between_option() {
  return unrecorded(parsed_option(
      named("between", "A,B", general_options, "report",
            "with one run: compare the answers of its evaluations after steps A and B; default: the first and the "
            "last"),
      "two different steps, separated by a comma", MYLOS_FIELD(report->between),
      [](std::string_view text) -> std::optional<std::pair<std::size_t, std::size_t>> {
        const auto steps = parse_list<std::size_t>(text, [](const std::string& word) {
          return parse_count(word, {0, 1'000'000'000'000});
        });
        if (!steps || steps->size() != 2 || steps->front() == steps->back()) return std::nullopt;
        return std::pair(steps->front(), steps->back());
      }));
}

inline std::vector<Option> tool_options(const tasks::TaskKind& task) {
  std::vector<Option> options = {
      path_option(named("vocab", "FILE", general_options, "tokenize bench/tokenize", "vocab.txt: one token per line"),
                  MYLOS_FIELD(tokenize->vocabulary)),
      switch_option(named("offsets", "", general_options, "tokenize",
                          "print {\"tokens\", \"ids\", \"offsets\"}; offsets count code points of the line"),
                    MYLOS_FIELD(tokenize->offsets)),
      switch_option(
          named("decode", "", general_options, "tokenize",
                "convert ids to text: lines of JSON lists, or of ids separated by white space; needs --model"),
          MYLOS_FIELD(tokenize->decode)),
      switch_option(
          with_help(
              named("chat", "", general_options, "tokenize generate",
                    "prompts are conversations, a JSON list of messages or an object with \"messages\", or what a "
                    "user says first; the assistant answers until its turn ends"),
              {{"tokenize",
                "lines are conversations, {\"messages\": [...]}: print {\"text\", \"ids\", \"mask\"}, with 1 where "
                "training counts a token; needs --model"}}),
          MYLOS_FIELD(chat)),
      switch_option(named("cased", "", general_options, "tokenize bench/tokenize", "keep case and accents"),
                    MYLOS_FIELD(tokenize->cased)),
      count_option(named("tokens", "N", general_options, "bench/gemm", "with gemm: number of tokens in a batch"),
                   {1, 10'000'000}, MYLOS_FIELD(bench->tokens)),
      providers_option(),
      modes_option(),
      ranks_option(),
      launcher_option(),
      real_option(
          named("baseline-seconds", "X", general_options, "compare",
                "total time of another program on one GPU, in seconds: speedup and efficiency are relative to it"),
          {0, unbounded, true}, MYLOS_FIELD(compare->baseline_seconds)),
      count_option(
          named("repeats", "N", general_options, "bench compare", "number of measurements, whose median is reported"),
          {1, 100'000}, MYLOS_FIELD(repeats)),
      switch_option(
          named("breakdown", "", general_options, "bench/step",
                "with step: print time, work and share of the roofline of each kernel, and the time on the host"),
          MYLOS_FIELD(bench->breakdown)),
      switch_option(named("plan", "", general_options, "bench/batch",
                          "with batch: predict the table for the device of --gpu instead of measuring it"),
                    MYLOS_FIELD(bench->predicts)),
      unrecorded(path_option(named("batches", "FILE", general_options, "report",
                                   "output of mylos bench batch --json, shown as a table of micro-batches"),
                             MYLOS_FIELD(report->batches))),
      between_option(),
      unrecorded(path_option(named("kernels", "FILE", general_options, "report",
                                   "output of mylos bench step --breakdown --json, shown as a table of kernel times"),
                             MYLOS_FIELD(report->kernels))),
      switch_option(named("merge", "", general_options, "checkpoint/export",
                          "with export: write the model with the run's adapters in its weights, not the adapters"),
                    MYLOS_FIELD(checkpoint->merges)),
      switch_option(named("once", "", general_options, "watch", "show the run's present state and exit"),
                    MYLOS_FIELD(watch->once)),
      duration_option(named("refresh", "T", general_options, "watch", "time between updates: seconds, or a duration"),
                      MYLOS_FIELD(watch->refresh)),
      switch_option(
          with_help(named("json", "", general_options,
                          "ask generate info bench checkpoint compare plan watch doctor classify sweep", "print JSON"),
                    {{"watch", "print JSON and exit"}}),
          MYLOS_FIELD(json)),
  };
  if (!task.known_models().empty()) options.push_back(shapes_option(task));
  return options;
}

}  // namespace mylos::app
