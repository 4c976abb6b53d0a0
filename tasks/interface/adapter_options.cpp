#include "tasks/interface/adapter_options.hpp"

#include "core/base/options/option_kinds.hpp"
#include "data/huggingface/adapter_config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace mylos::tasks {
namespace {

constexpr std::string_view adapters = "Adapters", trains = "train plan bench/step";
constexpr std::string_view exported = "checkpoint/export";  // reads what a checkpoint's run had

/// `aliases` are the names in PEFT and in programs that train with it.
Option<RunConfig> own(std::string name, std::string placeholder, std::string_view commands, std::string help,
                      OptionTraits traits, std::vector<std::string> aliases = {}) {
  Option<RunConfig> option =
      named_option<RunConfig>(std::move(name), std::move(placeholder), adapters, commands, std::move(help), traits);
  option.aliases = std::move(aliases);
  return option;
}

std::string without_spaces_around(const std::string& text) {
  const std::size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

/// A list of names, separated by commas.
Option<RunConfig> names_option(Option<RunConfig> option, std::vector<std::string> AdapterSettings::*field) {
  option.expects = "names separated by commas";
  option.parse = [field](RunConfig& run, std::string_view text) {
    std::vector<std::string> names = split(text, ',');
    std::ranges::transform(names, names.begin(), without_spaces_around);
    if (stands_alone(text)) names = {std::string(text)};
    if (std::ranges::any_of(names, &std::string::empty)) return false;
    if (names.size() > 1 && std::ranges::any_of(names, stands_alone)) return false;
    run.task.adapters.*field = std::move(names);
    return true;
  };
  option.print = [field](const RunConfig& run) -> nlohmann::ordered_json {
    const std::vector<std::string>& names = run.task.adapters.*field;
    const bool is_default = run.task.adapters.rank == 0 && names == AdapterSettings().*field;
    if (names.empty() || is_default) return nullptr;
    return fmt::format("{}", fmt::join(names, ","));
  };
  return option;
}

}  // namespace

bool stands_alone(std::string_view target) {
  return target == "all-linear" || target.find_first_of("*+?()[]|\\^$") != std::string_view::npos;
}

std::vector<Option<RunConfig>> adapter_options() {
  const OptionNeed rank{
      .option = "lora-rank",
      .choice = {},
      .why = "only new adapters take it, and those of --adapter have their own in adapter_config.json"};
  std::vector<Option<RunConfig>> all = {
      count_or_unset_option(
          own("lora-rank", "N", trains,
              "train low-rank adapters of this rank (LoRA) instead of the model's own weights; 0: none",
              {.lays_out = true, .excludes = "freeze adapter", .from_run = exported, .is_shown = true}, {"lora-r"}),
          {0, 65'536}, MYLOS_FIELD(task.adapters.rank)),
      real_option(own("lora-alpha", "X", trains,
                      "adapters are multiplied by X / rank, or with --lora-rslora by X / sqrt(rank); default: 2 rank",
                      {.needs = rank, .from_run = exported}),
                  {.smallest = 0.0, .largest = data::most_adapter_alpha, .open_below = true, .open_above = true},
                  MYLOS_FIELD(task.adapters.alpha)),
      real_option(own("lora-dropout", "X", trains, "dropout probability of what adapters read",
                      {.lays_out = true, .needs = rank, .from_run = exported}),
                  {.smallest = 0.0, .largest = 1.0, .open_above = true}, MYLOS_FIELD(task.adapters.dropout)),
      names_option(own("lora-targets", "LIST", trains,
                       "linear layers with an adapter, separated by commas: q, k, v, o, gate, up, down, or ends of "
                       "module names as PEFT has them; or all-linear, every layer but the head; or a regular "
                       "expression for whole names, which has a sign such as * or (; default: q,v",
                       {.lays_out = true, .needs = rank, .from_run = exported},
                       {"target-modules", "lora-target-modules", "lora-target"}),
                   &AdapterSettings::targets),
      switch_option(own("lora-rslora", "", trains, "divide --lora-alpha by the square root of the rank",
                        {.needs = rank, .from_run = exported}, {"use-rslora", "peft-use-rslora"}),
                    MYLOS_FIELD(task.adapters.rslora)),
      names_option(own("lora-train", "LIST", trains,
                       "modules that are trained whole beside the adapters, separated by commas; the head of question "
                       "answering always is",
                       {.lays_out = true, .needs = rank, .from_run = exported},
                       {"modules-to-save", "lora-modules-to-save", "additional-target"}),
                   &AdapterSettings::trained),
      path_option(
          own("adapter", "DIR", "train plan bench/step eval ask generate merge",
              "directory of an adapter of the model, as PEFT or a run with --lora-rank writes it; train goes on "
              "with it, other commands merge it into the model",
              {.lays_out = true, .excludes = "freeze", .from_run = exported},
              {"adapter-name-or-path", "lora-model-dir"}),
          MYLOS_FIELD(task.adapters.directory)),
  };
  return all;
}

}  // namespace mylos::tasks
