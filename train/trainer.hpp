#pragma once

#include "train/loss_scale.hpp"
#include "train/memory_plan.hpp"
#include "train/rank_layout.hpp"
#include "train/report.hpp"
#include "train/task.hpp"
#include "train/train_config.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The run: steps, evaluations, the best and the last model.
namespace mylos::train {

/// How a run ended.
struct RunResult {
  std::size_t steps = 0;          ///< done
  std::size_t skipped = 0;        ///< of them, where the loss scale was too large; over all starts of the run
  int signal = 0;                 ///< that ended it early, or 0
  bool stopped_early = false;     ///< patience ran out
  bool out_of_time = false;       ///< TrainConfig::stop_at came; `signal` is then SIGUSR1
  double training_seconds = 0.0;  ///< steps only, over all starts of the run
  double earlier_seconds = 0.0;   ///< of them, those of earlier starts
  Metrics best;                   ///< of the evaluation that is in best/
  std::optional<double> joules;   ///< that its GPUs used over all starts, where that is known; the caller's to say
};

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
  /// For the next step.
  const LossScale& loss_scale() const;
  /// Who computes the matrix products.
  const GemmChoice& gemm() const;

  /// Scores the model as it is now. Errors: the task has nothing to evaluate.
  Metrics evaluate();
  /// Trains to the end, telling this rank's `reporters`; a signal to any rank ends it at a step's end. The first rank
  /// writes best/ and last/ where the configuration names an output directory. Errors: a loss that is not finite, and a
  /// gradient that is not with the least loss scale, ends the run; last/ then has the weights of the step before, where
  /// those are finite. Checkpoints are written by all
  /// ranks when they are due, and where a signal ends the run; `description` is the run's configuration as JSON, which
  /// they keep.
  RunResult run(const std::vector<Reporter*>& reporters, const std::string& description = "{}");

  /// Master values of the row called `name`, or those of a state row, on every rank.
  void read_row(const std::string& name, std::span<float> values) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mylos::train
