#include "app/options/options.hpp"

#include "core/kernels/gemm_providers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

/// Options of the small commands, and options that every command has.
namespace mylos::app {
namespace {

constexpr std::string_view general = "Options";

/// Parses "a,b" as a list of providers of this build.
bool parse_providers(Arguments& arguments, std::string_view text) {
  const std::vector<std::string> known = built_gemm_providers();
  std::vector<std::string> chosen = split(text, ',');
  for (const std::string& name : chosen) {
    if (std::ranges::find(known, name) == known.end()) return false;
  }
  arguments.bench.providers = std::move(chosen);
  return true;
}

Option providers_option() {
  std::vector<Choice> choices;
  for (const std::string& name : built_gemm_providers()) choices.push_back({name, {}});
  Option option = named("providers", {}, "A,B", general, "bench/gemm bench/step",
                        "with gemm and step: providers to time, separated by commas: " + describe(choices) +
                            "; default: all that do not round float");
  option.expects = "a list, separated by commas, of " + describe(choices);
  option.parse = parse_providers;
  return option;
}

Option shapes_option(const tasks::TaskKind& task) {
  std::vector<Choice> choices;
  for (const std::string& name : task.known_models()) choices.push_back({name, {}});
  Option option = choice_option(
      named("shapes", {}, "NAME", general, "bench/gemm",
            "with gemm: model whose products are timed if --model is not given: " + describe(choices)),
      choices, [](auto& a) -> auto& { return a.bench.shapes; });
  option.print = [choices](const Arguments& arguments) -> nlohmann::ordered_json {
    if (!arguments.bench.shapes.empty()) return arguments.bench.shapes;
    return choices.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(choices.front().name);
  };
  return option;
}

Option modes_option() {
  Option option = with_help(
      named("modes", {}, "A,B", general, "compare bench/batch",
            "sharding strategies to compare, separated by commas, or all; default: all but hybrid"),
      {{"bench",
        "with batch: sharding strategies, separated by commas, or all; default: replicated, and sharded with several "
        "ranks"}});
  option.expects = "a list, separated by commas, of " + describe(mode_choices()) + "; or all";
  option.choices = names_of(mode_choices());
  option.choices.emplace_back("all");
  option.parse = [](Arguments& arguments, std::string_view text) {
    const std::vector<Choice> choices = mode_choices();
    std::vector<std::string> modes;
    if (text == "all") {
      for (const Choice& choice : choices) modes.push_back(choice.name);
    } else {
      for (const std::string& typed : split(text, ',')) modes.push_back(parse_choice(typed, choices).value_or(""));
    }
    const bool known = std::ranges::find(modes, "") == modes.end();
    if (known) arguments.modes = std::move(modes);
    return known;
  };
  return option;
}

/// Returns the ranks of "4", or of "2x2": nodes x ranks a node.
std::optional<ComparedRanks> parse_ranks(const std::string& word) {
  const CountRange any{1, 1'000'000};
  const std::vector<std::string> parts = split(word, 'x');
  const auto first = parse_count(parts.front(), any), last = parse_count(parts.back(), any);
  if (parts.size() > 2 || !first || !last) return std::nullopt;
  return parts.size() == 1 ? ComparedRanks{*first} : ComparedRanks{*first * *last, *first};
}

Option ranks_option() {
  Option option = named("ranks", {}, "N,M", general, "compare",
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
    arguments.compare.ranks = std::move(ranks);
    return true;
  };
  return option;
}

Option launcher_option() {
  Option option = named("launcher", {}, "COMMAND", general, "compare",
                        "command that starts a program on {n} ranks, such as \"srun -n {n}\", or on {nodes} nodes with "
                        "{ranks_per_node} each; default: mpirun -n {n}");
  option.expects = "a command with {n} in it, or with {nodes} and {ranks_per_node}";
  option.parse = [](Arguments& arguments, std::string_view text) {
    const auto has = [&](std::string_view word) { return text.find(word) != std::string_view::npos; };
    if (!has("{n}") && !(has("{nodes}") && has("{ranks_per_node}"))) return false;
    arguments.compare.launcher = text;
    return true;
  };
  return option;
}

Option between_option() {
  Option option = named(
      "between", {}, "A,B", general, "report",
      "with one run: compare the answers of its evaluations after steps A and B; default: the first and the last");
  option.expects = "two different steps, separated by a comma";
  option.parse = [](Arguments& arguments, std::string_view text) {
    const std::vector<std::string> words = split(text, ',');
    if (words.size() != 2) return false;
    const CountRange any{0, 1'000'000'000'000};
    const auto first = parse_count(words[0], any), second = parse_count(words[1], any);
    if (!first || !second || first == second) return false;
    arguments.report.between.emplace(*first, *second);
    return true;
  };
  return option;
}

}  // namespace

std::vector<Option> tool_options(const tasks::TaskKind& task) {
  std::vector<Option> options = {
      path_option(
          named("vocab", {}, "FILE", general, "tokenize bench/tokenize", "vocab.txt: one token per line"),
          [](auto& a) -> auto& { return a.tokenize.vocabulary; }),
      switch_option(
          named("offsets", {}, "", general, "tokenize",
                "print {\"tokens\", \"ids\", \"offsets\"}; offsets count code points of the line"),
          [](auto& a) -> auto& { return a.tokenize.offsets; }),
      switch_option(
          named("decode", {}, "", general, "tokenize",
                "convert ids to text: lines of JSON lists, or of ids separated by white space; needs --model"),
          [](auto& a) -> auto& { return a.tokenize.decode; }),
      switch_option(
          named("cased", {}, "", general, "tokenize bench/tokenize", "keep case and accents"),
          [](auto& a) -> auto& { return a.tokenize.cased; }),
      count_option(
          named("tokens", {}, "N", general, "bench/gemm", "with gemm: number of tokens in a batch"), {1, 10'000'000},
          [](auto& a) -> auto& { return a.bench.tokens; }),
      providers_option(),
      modes_option(),
      ranks_option(),
      launcher_option(),
      real_option(
          named("baseline-seconds", {}, "X", general, "compare",
                "total time of another program on one GPU, in seconds: speedup and efficiency are relative to it"),
          {0, unbounded, true}, [](auto& a) -> auto& { return a.compare.baseline_seconds; }),
      count_option(
          named("repeats", {}, "N", general, "bench compare", "number of measurements, whose median is reported"),
          {1, 100'000}, [](auto& a) -> auto& { return a.repeats; }),
      switch_option(
          named("breakdown", {}, "", general, "bench/step",
                "with step: print time, work and share of the roofline of each kernel, and the time on the host"),
          [](auto& a) -> auto& { return a.bench.breakdown; }),
      switch_option(
          named("plan", {}, "", general, "bench/batch",
                "with batch: predict the table for the device of --gpu instead of measuring it"),
          [](auto& a) -> auto& { return a.bench.predicts; }),
      unrecorded(path_option(
          named("batches", {}, "FILE", general, "report",
                "output of mylos bench batch --json, shown as a table of micro-batches"),
          [](auto& a) -> auto& { return a.report.batches; })),
      between_option(),
      unrecorded(path_option(
          named("kernels", {}, "FILE", general, "report",
                "output of mylos bench step --breakdown --json, shown as a table of kernel times"),
          [](auto& a) -> auto& { return a.report.kernels; })),
      switch_option(
          named("once", {}, "", general, "watch", "show the run's present state and exit"),
          [](auto& a) -> auto& { return a.watch.once; }),
      duration_option(
          named("refresh", {}, "T", general, "watch", "time between updates: seconds, or a duration"),
          [](auto& a) -> auto& { return a.watch.refresh; }),
      switch_option(
          with_help(named("json", {}, "", general,
                          "ask generate info bench checkpoint compare plan watch doctor classify sweep", "print JSON"),
                    {{"watch", "print JSON and exit"}}),
          [](auto& a) -> auto& { return a.json; }),
  };
  if (!task.known_models().empty()) options.push_back(shapes_option(task));
  return options;
}

}  // namespace mylos::app
