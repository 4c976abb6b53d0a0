#include "train/engine/memory/rank_layout.hpp"

#include "core/base/setting_error.hpp"
#include "parallel/communicator/agreement.hpp"
#include "train/engine/memory/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace mylos::train {
namespace {

using parallel::StrategyKind;

/// Returns the number of ranks that shard a unit in hybrid mode.
std::size_t hybrid_shard_size(const ParallelConfig& config, const RankCounts& counts) {
  if (config.shard_size > 0) {
    if (counts.ranks % config.shard_size == 0) return config.shard_size;
    throw SettingError("shard-size", std::to_string(config.shard_size),
                       fmt::format("does not divide the {} ranks; use a number that does", counts.ranks));
  }
  if (counts.of_node > 0) return counts.of_node;
  throw SettingError("mode", "hybrid",
                     fmt::format("the nodes have different numbers of ranks, or ranks that are not consecutive; give "
                                 "the ranks per copy of the model with {}",
                                 setting("shard-size")));
}

void check_shard_size(const ParallelConfig& config, StrategyKind strategy) {
  if (config.shard_size == 0 || strategy == StrategyKind::hybrid) return;
  throw SettingError("shard-size", std::to_string(config.shard_size),
                     fmt::format("belongs to {}, and this run's is {}; leave one of them out",
                                 setting("mode", "hybrid"), to_string(strategy)));
}

/// Step sums have the same order for any number of ranks only if each rank's sum is a subtree of one binary tree.
void check_deterministic(const TrainConfig& config, std::size_t ranks) {
  const std::size_t micro_batch_groups = config.parallel.micro_batch_groups;
  if (!std::has_single_bit(micro_batch_groups)) {
    throw SettingError("leaves", std::to_string(micro_batch_groups),
                       "must be a power of two, because sums are binary trees");
  }
  if (micro_batch_groups % ranks != 0) {
    throw SettingError(
        "deterministic",
        fmt::format("{} micro-batch groups cannot be divided among {} ranks; use 1, 2, 4 ... up to {} ranks{}",
                    micro_batch_groups, ranks, micro_batch_groups,
                    std::has_single_bit(ranks) ? ", or " + setting("leaves", std::to_string(ranks)) : ""));
  }
  if (config.micro_batch == 0 && config.micro_tokens == 0 && config.accumulation == 0) return;
  throw SettingError(
      "deterministic",
      fmt::format("its {} micro-batch groups are the micro-batches of every step; leave out {}", micro_batch_groups,
                  config.micro_batch > 0    ? setting("micro-batch")
                  : config.micro_tokens > 0 ? setting("micro-tokens")
                                            : setting("gradient-accumulation-steps")));
}

}  // namespace

Ranks ranks_of(parallel::Launch& launch) { return {launch.world(), launch.placements()}; }

parallel::DeviceSums device_sums(const TrainConfig& config) {
  return {.in_order = config.parallel.deterministic, .bfloat16 = config.parallel.bfloat16_gradients};
}

RankCounts count_ranks(std::span<const parallel::RankPlacement> placements) {
  RankCounts counts{.ranks = placements.size(), .nodes = 1, .of_node = 1};
  std::vector<std::size_t> nodes;  // node of each rank
  for (const parallel::RankPlacement& placement : placements) nodes.push_back(placement.node);
  std::vector<std::size_t> distinct = nodes;
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  counts.nodes = distinct.size();
  counts.of_node = placements.size() % counts.nodes == 0 ? placements.size() / counts.nodes : 0;
  for (std::size_t rank = 0; counts.of_node > 0 && rank < nodes.size(); ++rank) {
    if (nodes[rank] != nodes[rank / counts.of_node * counts.of_node]) counts.of_node = 0;
  }
  return counts;
}

RankCounts count_with_threads(const Ranks& ranks, std::size_t threads) {
  RankCounts counts = count_ranks(ranks.placements);
  counts.threads = static_cast<std::size_t>(parallel::maximum(ranks.world, static_cast<std::int64_t>(threads)));
  // Ranks compute on GPUs of one vendor, that of the build.
  counts.architecture = architecture_in_use();
  counts.architecture.number = static_cast<int>(parallel::minimum(ranks.world, counts.architecture.number));
  return counts;
}

std::size_t available_on_every_rank(const Ranks& ranks) {
  ranks.world.barrier("free memory");  // no rank may allocate before all have measured
  const parallel::RankPlacement& mine = ranks.placements[ranks.world.rank()];
  const auto sharing = std::ranges::count_if(ranks.placements, [&](const parallel::RankPlacement& placement) {
    return placement.node == mine.node && placement.device == mine.device;
  });
  const std::size_t free = std::min<std::size_t>(available_memory(static_cast<std::size_t>(sharing)), INT64_MAX);
  return static_cast<std::size_t>(parallel::minimum(ranks.world, static_cast<std::int64_t>(free)));
}

RankLayout lay_out(const TrainConfig& config, StrategyKind strategy, const RankCounts& counts) {
  check_shard_size(config.parallel, strategy);
  RankLayout layout{
      .strategy = strategy, .shards = 1, .split = {.ranks = counts.ranks, .longest_first = !counts.on_host}};
  const std::size_t shard_size = strategy == StrategyKind::hybrid ? hybrid_shard_size(config.parallel, counts) : 1;
  layout.shards = parallel::ranks_that_split(strategy, shard_size, counts.ranks);
  if (!config.parallel.deterministic) return layout;
  check_deterministic(config, counts.ranks);
  layout.split.micro_batch_groups = config.parallel.micro_batch_groups;
  // Gradients are then summed over ranks after each micro-batch.
  if (parallel::shards_gradients(strategy)) layout.split.reduced_together = layout.shards;
  return layout;
}

}  // namespace mylos::train
