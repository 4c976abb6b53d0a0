#include "parallel/sharding/strategy_kind.hpp"

#include <algorithm>

namespace mylos::parallel {
namespace {

const StrategyDescription& describe_strategy(StrategyKind kind) {
  return *std::ranges::find(every_strategy(), kind, &StrategyDescription::kind);
}

}  // namespace

const std::vector<StrategyDescription>& every_strategy() {
  static const std::vector<StrategyDescription> strategies = {
      {StrategyKind::replicated, "replicated", {"ddp"}, false, false, false},
      {StrategyKind::sharded_optimizer, "sharded-optimizer", {"zero1", "deepspeed_stage_1"}, true, false, false},
      {StrategyKind::sharded_gradients,
       "sharded-gradients",
       {"zero2", "deepspeed", "deepspeed_stage_2"},
       true,
       true,
       false},
      {StrategyKind::sharded, "sharded", {"zero3", "fsdp", "deepspeed_stage_3"}, true, true, true},
      {StrategyKind::hybrid, "hybrid", {"hsdp"}, true, true, true},
  };
  return strategies;
}

bool shards_optimizer(StrategyKind kind) { return describe_strategy(kind).shards_optimizer; }
bool shards_gradients(StrategyKind kind) { return describe_strategy(kind).shards_gradients; }
bool shards_values(StrategyKind kind) { return describe_strategy(kind).shards_values; }

std::size_t ranks_that_split(StrategyKind kind, std::size_t shard_size, std::size_t ranks) {
  if (!shards_optimizer(kind)) return 1;
  return kind == StrategyKind::hybrid ? shard_size : ranks;
}

std::string_view to_string(StrategyKind kind) { return describe_strategy(kind).name; }

std::optional<StrategyKind> parse_strategy(std::string_view name) {
  for (const StrategyDescription& strategy : every_strategy()) {
    if (strategy.name == name) return strategy.kind;
  }
  return std::nullopt;
}

}  // namespace mylos::parallel
