#include "app/options/options.hpp"
#include "app/options/plan_options.hpp"

#include "parallel/sharding/strategy_kind.hpp"

#include <nlohmann/json.hpp>

#include <bit>

/// Options for running on several ranks.
namespace mylos::app {
namespace {

constexpr std::string_view ranks = "Ranks";
constexpr std::size_t most_micro_batch_groups = 1024;

Option mode_option() {
  const std::vector<Choice> choices = mode_choices();
  const std::string strategies = "sharding strategy: " + describe(choices);
  Option option = enumeration_option(with_help(named("mode", "MODE", ranks, "train plan",
                                                     strategies + "; default: replicated, or sharded if only that fits",
                                                     {.on_resume = OnResume::free, .lays_out = true, .is_shown = true}),
                                               {{"plan", strategies + "; default: all, which plans for each of them"},
                                                {"bench", "bench batch takes --modes"}}),
                                     choices, MYLOS_FIELD(run.engine.parallel.strategy), parallel::parse_strategy,
                                     name_or_null<parallel::StrategyKind>);
  option.choices.emplace_back("all");  // for plan only
  option.parse = [parse_one = option.parse](Arguments& arguments, std::string_view text) {
    arguments.plan->every_strategy = text == "all";
    return arguments.plan->every_strategy || parse_one(arguments, text);
  };
  return option;
}

Option communication_precision_option() {
  return enumeration_option(
      named("communication-precision", "TYPE", ranks, "train plan",
            "type in which gradients are sent: float or bfloat16; sums are computed in float",
            {.on_resume = OnResume::free}),
      {{"float", {"32", "fp32", "float32"}}, {"bfloat16", {"bf16"}}},
      MYLOS_FIELD(run.engine.parallel.bfloat16_gradients), [](std::string_view name) { return name == "bfloat16"; },
      [](bool is_bfloat16) { return is_bfloat16 ? "bfloat16" : "float"; });
}

/// The option is in MiB; the value is stored in bytes.
Option bucket_option() {
  const CountRange range{1, 1024};
  Option option = named("bucket-mib", "N", ranks, "train plan bench",
                        "communication bucket size in MiB; uses twice this memory", {.on_resume = OnResume::free});
  option.expects = describe(range);
  option.parse = [range](Arguments& arguments, std::string_view text) {
    const auto value = parse_count(text, range);
    if (value) arguments.run.engine.parallel.bucket = *value << 20;
    return value.has_value();
  };
  option.print = [](const Arguments& arguments) { return option_json(arguments.run.engine.parallel.bucket >> 20); };
  return option;
}

Option micro_batch_groups_option() {
  return parsed_option(
      named("leaves", "N", ranks, "train",
            "with --deterministic: number of micro-batch groups per step, a power of two; also the largest number of "
            "ranks"),
      "a power of two from 1 to 1024", MYLOS_FIELD(run.engine.parallel.micro_batch_groups), [](std::string_view text) {
        const auto value = parse_count(text, {1, most_micro_batch_groups});
        return value && std::has_single_bit(*value) ? value : std::nullopt;
      });
}

}  // namespace

std::vector<Choice> mode_choices() {
  std::vector<Choice> choices;
  for (const parallel::StrategyDescription& strategy : parallel::every_strategy())
    choices.push_back({strategy.name, strategy.aliases});
  return choices;
}

std::vector<Option> rank_options() {
  return {
      mode_option(),
      count_or_unset_option(
          named("shard-size", "N", ranks, "train plan",
                "number of ranks that share one copy of the model in hybrid mode; default: the ranks of a node",
                {.on_resume = OnResume::free, .lays_out = true}),
          {}, MYLOS_FIELD(run.engine.parallel.shard_size)),
      communication_precision_option(),
      bucket_option(),
      switch_option(
          named("deterministic", "", ranks, "train",
                "give the same bits on 1, 2, 4, ... ranks and in every mode, with the same number of threads per rank"),
          MYLOS_FIELD(run.engine.parallel.deterministic)),
      micro_batch_groups_option(),
      duration_option(
          named("collective-timeout", "T", ranks, "train bench doctor",
                "time that a rank waits for another before the program ends on all ranks: seconds, or a duration (90s, "
                "10m)",
                {.on_resume = OnResume::free}),
          MYLOS_FIELD(collective_timeout)),
  };
}

}  // namespace mylos::app
