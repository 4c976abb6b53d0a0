#pragma once

#include "core/kernels/scratch.hpp"
#include "parallel/launch/launch.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "train/engine/samples/step_assignment.hpp"
#include "train/engine/train_config.hpp"

#include <cstddef>
#include <span>
#include <vector>

/// Distributes a run over the ranks that it was launched with.
namespace mylos::train {

/// The ranks of a run. The communicator must outlive this object.
struct Ranks {
  parallel::Communicator& world;
  std::vector<parallel::RankPlacement> placements;  ///< placement of every rank
};
Ranks ranks_of(parallel::Launch& launch);
/// Returns how a run sums arrays of devices.
parallel::DeviceSums device_sums(const TrainConfig& config);

/// The properties of the ranks that plans need.
struct RankCounts {
  std::size_t ranks = 1;
  std::size_t nodes = 1;
  std::size_t of_node = 1;      ///< ranks per node, with consecutive rank numbers; 0 if nodes differ
  bool on_host = runs_on_host;  ///< kernels compute in host memory; a plan may target another machine
  std::size_t threads = 0;      ///< concurrent threads of a rank's processor or device: the maximum over all ranks
  GpuArchitecture architecture = {};  ///< of the devices: the lowest over all ranks

  TeamProcessor processor() const { return {.threads = threads, .on_host = on_host, .architecture = architecture}; }
};
RankCounts count_ranks(std::span<const parallel::RankPlacement> placements);
/// Returns the rank counts of all ranks, and the architecture of their devices. `threads` is the number of concurrent
/// threads of this rank. Collective.
RankCounts count_with_threads(const Ranks& ranks, std::size_t threads);

/// Returns the bytes that every rank may still allocate where kernels compute: the minimum over ranks. Ranks on the
/// same node or device share its free memory equally. Collective.
std::size_t available_on_every_rank(const Ranks& ranks);

/// A sharding strategy with its groups, and the split of steps.
struct RankLayout {
  parallel::StrategyKind strategy = parallel::StrategyKind::replicated;
  std::size_t shards = 1;  ///< neighbouring ranks that shard a unit
  StepSplit split;
};

/// Returns the layout of a run in `strategy`. Errors: std::runtime_error, suggesting a change, if ranks, shard size and
/// the guarantees of --deterministic are incompatible.
RankLayout lay_out(const TrainConfig& config, parallel::StrategyKind strategy, const RankCounts& counts);

}  // namespace mylos::train
