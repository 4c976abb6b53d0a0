#pragma once

#include "train/engine/memory/memory_plan.hpp"
#include "train/planning/machine.hpp"
#include "train/planning/step_time.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

/// Predicts a run before it is submitted: for each sharding strategy the memory per rank, the step time and the job
/// time.
namespace mylos::train {

/// The machine that a run is planned for.
struct PlanTarget {
  Machine machine;
  ComputeRate rate;
  Network network;
  RankCounts ranks;
  /// Returns the bytes of device memory for a rank's connections in the groups of a mode. Empty: none.
  std::function<std::size_t(const Machine&, parallel::StrategyKind)> connections = {};
  std::size_t program = 0;  ///< bytes that a rank uses before the run allocates anything
  double storage = 1e9;     ///< bytes per second when writing checkpoints
};

/// The largest micro-batch that fits with one setting of --recompute.
struct LargestMicroBatch {
  nn::Recompute recompute = nn::Recompute::none;
  std::size_t samples = 0;  ///< largest micro-batch per rank, in samples of maximum length, for any batch; 0 = none
                            ///< fits
};

struct StrategyPlan {
  parallel::StrategyKind strategy = parallel::StrategyKind::replicated;
  bool fits = false;
  std::string obstacle = {};  ///< if it does not fit: settings that would
  MemoryPlan memory = {};     ///< if it does not fit: the plan for one sequence per micro-batch
  std::size_t largest = 0;    ///< largest micro-batch per rank, in sequences of maximum length; 0 = none fits
  std::vector<LargestMicroBatch> largest_of_each = {};  ///< `largest` for each --recompute that the model supports
  std::size_t host_staging = 0;  ///< bytes of host memory of a rank if device arrays are exchanged over MPI; 0 on CPUs
  StepTime step = {};
  double kept_per_flop = 0.0;       ///< kept_bytes_per_flop of the model with the largest micro-batch
  std::size_t batch = 0;            ///< samples of a full step over all ranks
  std::size_t efficient_batch = 0;  ///< smallest batch with at least 90 % of the step spent computing; 0 = none
  double tokens = 0.0;              ///< mean tokens per step over all ranks
  double training = 0.0;            ///< seconds for all steps
  double checkpoints = 0.0;         ///< seconds for writing checkpoints and the final model
  /// Pairs of rank count and fraction of the ideal throughput, with the same work per rank as in this plan.
  std::vector<std::pair<std::size_t, double>> efficiency = {};

  /// Returns the fraction of a step that ranks spend computing or updating.
  double busy() const { return step.total() > 0.0 ? 1.0 - step.exposed / step.total() : 1.0; }
  double job() const { return training + checkpoints; }
};

/// Plans `workload` with the strategy config.parallel.mode, which must be set. Steps are predicted from the mean of up
/// to 64 of the run's steps. Errors: std::runtime_error for requirements of the model, samples or ranks that no amount
/// of memory can meet.
StrategyPlan plan_run(const Workload& workload, const TrainConfig& config, const PlanTarget& target);

/// Returns the largest micro-batch, in samples of maximum length, that fits into `available` bytes per rank, found by
/// doubling and bisection. `plan`, for the same strategy and ranks, gives the memory held outside the passes. Returns 0
/// if none fits.
std::size_t largest_micro_batch_that_fits(const Workload& workload, const MemoryPlan& plan, const RankCounts& ranks,
                                          nn::Recompute recompute, std::size_t available);
/// Returns largest_micro_batch_that_fits for each recomputation that the model supports.
std::vector<LargestMicroBatch> largest_micro_batches(const Workload& workload, const MemoryPlan& plan,
                                                     const RankCounts& ranks, std::size_t available);

/// Returns the bytes of activations kept per operation in a training pass over a batch of this shape without
/// recomputation. The memory traffic of kernels other than matrix products is proportional to it: narrow models move
/// more.
double kept_bytes_per_flop(const nn::Model& model, const BatchShape& shape);

/// Returns the seconds per operation in the passes of a model with `kept_per_flop`. `rate.flops` was measured on a
/// model with rate.kept_per_flop; the difference in bytes moved is charged at rate.bandwidth.
double seconds_per_flop(const ComputeRate& rate, double kept_per_flop);

/// Returns the bytes of device memory for a rank's connections with others.
std::size_t connections_of(const PlanTarget& target, parallel::StrategyKind strategy);
/// Returns the bytes that a rank of `target` may use.
std::size_t room_of(const PlanTarget& target, parallel::StrategyKind strategy);

/// Returns the strategies available on these ranks, in the order of mylos train's options.
std::vector<parallel::StrategyKind> possible_strategies(const RankCounts& ranks);

/// Returns the bytes moved by norm, clipping and update per element of a rank's slices: the norm reads the gradient;
/// the update reads gradient, master weight and slots and writes master weight and slots; the next step zeroes the
/// gradient.
double optimizer_bytes(const nn::OptimizerKind& kind);

}  // namespace mylos::train
