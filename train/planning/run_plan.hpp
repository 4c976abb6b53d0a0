#pragma once

#include "train/engine/memory_plan.hpp"
#include "train/planning/machine.hpp"
#include "train/planning/step_time.hpp"

#include <string>
#include <utility>
#include <vector>

/// What a run will take before it is submitted: for each mode the memory of a rank, the time of a step and of the job.
namespace mylos::train {

/// The machine a run is planned for.
struct PlanTarget {
  Machine machine;
  ComputeRate rate;
  Network network;
  RankCounts ranks;
  std::size_t program = 0;  ///< bytes a rank has before the run takes anything
  double storage = 1e9;     ///< bytes a second that checkpoints are written with
};

/// How many samples at once fit with one setting of --recompute.
struct LargestMicroBatch {
  nn::Recompute recompute = nn::Recompute::none;
  std::size_t samples = 0;  ///< the most of the longest at once on a rank, whatever the batch; 0 = none fits
};

struct ModePlan {
  parallel::ModeKind mode = parallel::ModeKind::replicated;
  bool fits = false;
  std::string obstacle;     ///< where it does not fit: what would
  MemoryPlan memory;        ///< where it does not fit, of one sequence at once
  std::size_t largest = 0;  ///< the most of the longest sequences at once on a rank that fit; 0 = none
  std::vector<LargestMicroBatch> largest_of_each;  ///< the same with every --recompute that the model can
  StepTime step;
  double kept_per_flop = 0.0;       ///< kept_bytes_per_flop of the model in the largest micro-batch
  std::size_t batch = 0;            ///< samples of a full step on all ranks
  std::size_t efficient_batch = 0;  ///< the smallest at which a step computes for 90 % of its time; 0 = none does
  double tokens = 0.0;              ///< of a step on all ranks, on average
  double training = 0.0;            ///< seconds of all steps
  double checkpoints = 0.0;         ///< seconds of writing them, and the model at the end
  /// Share of the ideal throughput on so many ranks, each with as much of a step as here.
  std::vector<std::pair<std::size_t, double>> efficiency;

  /// Share of a step in which ranks compute or update.
  double busy() const { return step.total() > 0.0 ? 1.0 - step.exposed / step.total() : 1.0; }
  double job() const { return training + checkpoints; }
};

/// The plan of `workload` in config.parallel.mode, which is given. Steps are predicted from the mean of up to 64 of the
/// run's own. Errors: std::runtime_error for what the model, samples or ranks cannot honour in any memory.
ModePlan plan_run(const Workload& workload, const TrainConfig& config, const PlanTarget& target);

/// The most of the longest samples at once that fit into `available` bytes of a rank, by doubling and halving, with
/// what `plan` (of the same mode and ranks) holds beside a pass; 0 = none.
std::size_t largest_micro_batch_that_fits(const Workload& workload, const MemoryPlan& plan, const RankCounts& ranks,
                                          nn::Recompute recompute, std::size_t available);
/// The same with every recomputation that the model can.
std::vector<LargestMicroBatch> largest_micro_batches(const Workload& workload, const MemoryPlan& plan,
                                                     const RankCounts& ranks, std::size_t available);

/// Bytes of activations that a training pass over a batch of this shape keeps for each of its operations, nothing being
/// recomputed. What kernels other than products read and write is proportional to them: narrow models move more.
double kept_bytes_per_flop(const nn::Model& model, const BatchShape& shape);

/// Seconds of an operation of the passes of a model with `kept_per_flop`. `rate.flops` is of the model it was measured
/// on, with rate.kept_per_flop; the bytes that one of the two moves more or less go at rate.bandwidth.
double seconds_per_flop(const ComputeRate& rate, double kept_per_flop);

/// Bytes that a rank of `target` may take.
std::size_t room_of(const PlanTarget& target);

/// Modes that a number of ranks allows, in the order of mylos train's options.
std::vector<parallel::ModeKind> possible_modes(const RankCounts& ranks);

/// Bytes that norm, clip and AdamW move for each element of a rank's slices: the norm reads the gradient, the update
/// reads gradient, master weight and two slots and writes master weight and slots, and the next step clears the
/// gradient.
inline constexpr double optimizer_bytes = 36.0;

}  // namespace mylos::train
