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

struct ModePlan {
  parallel::ModeKind mode = parallel::ModeKind::replicated;
  bool fits = false;
  std::string obstacle;     ///< where it does not fit: what would
  MemoryPlan memory;        ///< where it does not fit, of one sequence at once
  std::size_t largest = 0;  ///< the most of the longest sequences at once on a rank that fit; 0 = none
  StepTime step;
  double tokens = 0.0;       ///< of a step on all ranks, on average
  double training = 0.0;     ///< seconds of all steps
  double checkpoints = 0.0;  ///< seconds of writing them, and the model at the end
  /// Share of the ideal throughput on so many ranks, each with as much of a step as here.
  std::vector<std::pair<std::size_t, double>> efficiency;

  double job() const { return training + checkpoints; }
};

/// The plan of `workload` in config.parallel.mode, which is given. Steps are predicted from the mean of up to 64 of the
/// run's own. Errors: std::runtime_error for what the model, samples or ranks cannot honour in any memory.
ModePlan plan_run(const Workload& workload, const TrainConfig& config, const PlanTarget& target);

/// Modes that a number of ranks allows, in the order of mylos train's options.
std::vector<parallel::ModeKind> possible_modes(const RankCounts& ranks);

/// Bytes that norm, clip and AdamW move for each element of a rank's slices: the norm reads the gradient, the update
/// reads gradient, master and two slots and writes master and slots, and the next step clears the gradient.
inline constexpr double optimizer_bytes = 36.0;

}  // namespace mylos::train
