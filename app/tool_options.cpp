#include "app/option_kinds.hpp"

#include "core/kernels/gemm.hpp"

#include <algorithm>

/// Options of the small commands, and those that every command has.
namespace mylos::app {
namespace {

constexpr std::string_view general = "Options";

/// "a,b" as a list of providers of this build.
bool parse_providers(Arguments& arguments, std::string_view text) {
  const std::vector<std::string> known = gemm_providers();
  std::vector<std::string> chosen;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    chosen.emplace_back(text.substr(begin, end - begin));
    if (std::ranges::find(known, chosen.back()) == known.end()) return false;
    begin = end + 1;
  }
  arguments.providers = std::move(chosen);
  return true;
}

Option providers_option() {
  std::vector<Choice> choices;
  for (const std::string& name : gemm_providers()) choices.push_back({name, {}});
  Option option = named("providers", {}, "A,B", general, bench_command,
                        "of gemm: whose products are timed; default: all of this build, " + describe(choices));
  option.expects = "a list, separated by commas, of " + describe(choices);
  option.parse = parse_providers;
  return option;
}

}  // namespace

std::vector<Option> tool_options() {
  return {
      path_option(
          named("vocab", {}, "FILE", general, tokenize_command | bench_command, "vocab.txt: one token a line"),
          [](auto& a) -> auto& { return a.vocabulary; }),
      switch_option(
          named("offsets", {}, "", general, tokenize_command,
                "print {\"tokens\", \"ids\", \"offsets\"}; offsets count code points of the line"),
          [](auto& a) -> auto& { return a.offsets; }),
      switch_option(
          named("cased", {}, "", general, tokenize_command | bench_command, "keep case and accents"),
          [](auto& a) -> auto& { return a.cased; }),
      choice_option(
          named("shapes", {}, "NAME", general, bench_command,
                "of gemm: bert-base, bert-large or minilm, whose "
                "products are timed where no --model is given"),
          {{"bert-base", {}}, {"bert-large", {}}, {"minilm", {}}}, [](auto& a) -> auto& { return a.shapes; }),
      count_option(
          named("tokens", {}, "N", general, bench_command, "of gemm: tokens of a batch"), {1, 10'000'000},
          [](auto& a) -> auto& { return a.tokens; }),
      providers_option(),
      count_option(
          named("repeats", {}, "N", general, bench_command, "timings, of which the median counts"), {1, 100'000},
          [](auto& a) -> auto& { return a.repeats; }),
      switch_option(
          named("breakdown", {}, "", general, bench_command,
                "of step: time, work and share of the roofline of each kernel, and the host's work"),
          [](auto& a) -> auto& { return a.breakdown; }),
      switch_option(
          named("json", {}, "", general, ask_command | info_command | bench_command, "print JSON"),
          [](auto& a) -> auto& { return a.json; }),
  };
}

}  // namespace mylos::app
