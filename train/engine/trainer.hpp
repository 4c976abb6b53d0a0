#pragma once

#include "train/engine/loss_scale.hpp"
#include "train/engine/memory_plan.hpp"
#include "train/engine/rank_layout.hpp"
#include "train/engine/report.hpp"
#include "train/engine/run_result.hpp"
#include "train/engine/task.hpp"
#include "train/engine/train_config.hpp"

#include <memory>
#include <string>
#include <vector>

/// The run: steps, evaluations, the best and the last model.
namespace mylos::train {

/// Sets up everything a run computes with, so that what cannot work fails before step 1. Every call is collective, and
/// an error of one rank is one of all.
class Trainer {
 public:
  /// `task`, the same on every rank, outlives the trainer; the arena is planned for `config` and memory taken here.
  /// Errors: std::runtime_error where it does not fit, or ranks and settings do not go together.
  Trainer(const TrainConfig& config, Task& task, const Ranks& ranks);
  /// On a rank of its own.
  Trainer(const TrainConfig& config, Task& task);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  const MemoryPlan& plan() const;
  std::size_t steps() const;
  /// Done by the run whose checkpoint this one goes on from; else 0.
  std::size_t first_step() const;
  /// Whether the run begins with the evaluation after first_step() steps.
  bool evaluation_due() const;
  /// For the next step.
  const LossScale& loss_scale() const;
  /// Ranks that write a checkpoint.
  std::size_t checkpoint_writers() const;
  /// Who computes the matrix products.
  const GemmChoice& gemm() const;

  /// Scores the model as it is now. Errors: the task has nothing to evaluate.
  Metrics evaluate();
  /// Trains to the end, telling this rank's `reporters`. The first rank writes best/ and last/ where the configuration
  /// names an output directory. All ranks write checkpoints when they are due; `description` is the run's configuration
  /// as JSON, which they keep. A signal to any rank stops the run at the end of a step or of an evaluation's batch,
  /// with a checkpoint and without last/, or, where it can write no checkpoints, with last/. Errors: a loss or an
  /// evaluation's outputs that are not finite, and a gradient that is not with the least loss scale, end the run; last/
  /// then has the weights of the step before, where those are finite. A file of an evaluation that cannot be written
  /// ends it after a checkpoint.
  RunResult run(const std::vector<Reporter*>& reporters, const std::string& description = "{}");

  /// Master values of the row called `name`, or those of a state tensor, on every rank.
  void read_tensor(const std::string& name, std::span<float> values) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mylos::train
