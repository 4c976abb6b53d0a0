#include "tasks/interface/adapter_options.hpp"

#include "core/base/options/option_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace mylos::tasks {
namespace {

constexpr std::string_view adapters = "Adapters", trains = "train plan bench/step";

Option<RunConfig> own(std::string name, std::string placeholder, std::string_view commands, std::string help,
                      OptionTraits traits) {
  return named_option<RunConfig>(std::move(name), std::move(placeholder), adapters, commands, std::move(help), traits);
}

/// A list of names, separated by commas, without spaces around them.
Option<RunConfig> names_option(Option<RunConfig> option, std::vector<std::string> AdapterSettings::*field) {
  option.expects = "names separated by commas";
  option.parse = [field](RunConfig& run, std::string_view text) {
    std::vector<std::string> names = split(text, ',');
    if (std::ranges::any_of(names, &std::string::empty)) return false;
    run.task.adapters.*field = std::move(names);
    return true;
  };
  option.print = [field](const RunConfig& run) -> nlohmann::ordered_json {
    const std::vector<std::string>& names = run.task.adapters.*field;
    if (names.empty() || run.task.adapters.rank == 0) return nullptr;
    return fmt::format("{}", fmt::join(names, ","));
  };
  return option;
}

}  // namespace

std::vector<Option<RunConfig>> adapter_options() {
  const OptionNeed rank{.option = "lora-rank", .choice = {}, .why = "to have an effect"};
  std::vector<Option<RunConfig>> all = {
      count_option(own("lora-rank", "N", trains,
                       "train low-rank adapters of this rank (LoRA) instead of the model's own weights; 0: none",
                       {.lays_out = true, .excludes = "freeze adapter", .is_shown = true}),
                   {0, 65'536}, MYLOS_FIELD(task.adapters.rank)),
      real_option(own("lora-alpha", "X", trains,
                      "adapters are multiplied by X / rank, or with --lora-rslora by X / sqrt(rank); default: 2 rank",
                      {.needs = rank}),
                  {.smallest = 0.0, .largest = unbounded, .open_below = true}, MYLOS_FIELD(task.adapters.alpha)),
      real_option(own("lora-dropout", "X", trains, "dropout probability of what adapters read",
                      {.lays_out = true, .needs = rank}),
                  {.smallest = 0.0, .largest = 1.0, .open_above = true}, MYLOS_FIELD(task.adapters.dropout)),
      names_option(own("lora-targets", "LIST", trains,
                       "linear layers with an adapter, separated by commas: q, k, v, o, gate, up, down, or ends of "
                       "module names as PEFT has them; all-linear: every layer but the head; a regular expression for "
                       "whole names is recognised by one of *+?()[]|",
                       {.lays_out = true, .needs = rank}),
                   &AdapterSettings::targets),
      switch_option(
          own("lora-rslora", "", trains, "divide --lora-alpha by the square root of the rank", {.needs = rank}),
          MYLOS_FIELD(task.adapters.rslora)),
      names_option(own("lora-train", "LIST", trains,
                       "modules that are trained whole beside the adapters, separated by commas; the head of question "
                       "answering always is",
                       {.lays_out = true, .needs = rank}),
                   &AdapterSettings::trained),
      path_option(
          own("adapter", "DIR", "train plan bench/step eval ask generate merge",
              "directory of an adapter of the model, as PEFT or a run with --lora-rank writes it; train goes on "
              "with it, other commands merge it into the model",
              {.lays_out = true, .excludes = "freeze"}),
          MYLOS_FIELD(task.adapters.directory)),
  };
  return all;
}

}  // namespace mylos::tasks
