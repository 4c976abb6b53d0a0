#pragma once

#include "core/kernels/scratch.hpp"
#include "parallel/launch/launch.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/step_assignment.hpp"
#include "train/engine/train_config.hpp"

#include <cstddef>
#include <span>
#include <vector>

/// How a run is spread over the ranks it was launched with.
namespace mylos::train {

/// The ranks of a run; the communicator outlives it.
struct Ranks {
  parallel::Communicator& world;
  std::vector<parallel::RankPlacement> placements;  ///< of every rank
};
Ranks ranks_of(parallel::Launch& launch);

/// What plans need to know of them.
struct RankCounts {
  std::size_t ranks = 1;
  std::size_t nodes = 1;
  std::size_t of_node = 1;      ///< on each node, neighbours in the order of ranks; 0 where nodes differ
  bool on_host = runs_on_host;  ///< kernels compute in memory of the host; a plan may be for another machine
  std::size_t threads = 0;      ///< that the processor of a rank, or its device, runs at once: the most of all ranks

  TeamProcessor processor() const { return {.threads = threads, .on_host = on_host}; }
};
RankCounts count_ranks(std::span<const parallel::RankPlacement> placements);

/// A mode with its groups, and how steps are split for it.
struct RankLayout {
  parallel::ModeKind mode = parallel::ModeKind::replicated;
  std::size_t shards = 1;  ///< neighbouring ranks that split what is split
  StepSplit split;
};

/// The layout of a run in `mode`. Errors: std::runtime_error that says what to change, where ranks, shard size and what
/// --deterministic promises do not go together.
RankLayout lay_out(const TrainConfig& config, parallel::ModeKind mode, const RankCounts& counts);

}  // namespace mylos::train
