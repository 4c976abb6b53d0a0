#pragma once

#include "train/engine/memory/rank_layout.hpp"
#include "train/engine/train_config.hpp"
#include "train/engine/workload.hpp"

#include <cstddef>
#include <string>

namespace mylos::train {

/// Suggests changes for a run of `steps` steps that needs more than `available` bytes on a rank in `strategy`. Returns
/// alternatives, each of which makes it fit: finer splits of a step, recomputation and sharding, or else shorter
/// samples and more ranks: "it fits with --micro-batch 4, or with --recompute layer".
std::string memory_advice(const Workload& workload, const TrainConfig& config, parallel::StrategyKind strategy,
                          std::size_t steps, std::size_t available, const RankCounts& ranks);

}  // namespace mylos::train
