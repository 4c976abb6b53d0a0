#include "train/engine/rank_memory.hpp"

#include "parallel/communicator/agreement.hpp"
#include "train/engine/memory.hpp"

#include <algorithm>
#include <cstdint>

namespace mylos::train {

std::size_t available_on_every_rank(const Ranks& ranks) {
  ranks.world.barrier("free memory");  // no rank may allocate before all have measured
  const parallel::RankPlacement& mine = ranks.placements[ranks.world.rank()];
  const auto sharing = std::ranges::count_if(ranks.placements, [&](const parallel::RankPlacement& placement) {
    return placement.node == mine.node && placement.device == mine.device;
  });
  const std::size_t free = std::min<std::size_t>(available_memory(static_cast<std::size_t>(sharing)), INT64_MAX);
  return static_cast<std::size_t>(parallel::minimum(ranks.world, static_cast<std::int64_t>(free)));
}

RankCounts count_with_threads(const Ranks& ranks, std::size_t threads) {
  RankCounts counts = count_ranks(ranks.placements);
  counts.threads = static_cast<std::size_t>(parallel::maximum(ranks.world, static_cast<std::int64_t>(threads)));
  return counts;
}

}  // namespace mylos::train
