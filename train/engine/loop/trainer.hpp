#pragma once

#include "train/engine/loop/loss_scale.hpp"
#include "train/engine/memory/memory_plan.hpp"
#include "train/engine/memory/rank_layout.hpp"
#include "train/engine/report.hpp"
#include "train/engine/task.hpp"
#include "train/engine/train_config.hpp"

#include <memory>
#include <string>
#include <vector>

/// Runs a training: steps, evaluations, the best and the last model.
namespace mylos::train {

struct RunSetup;
struct RunState;

/// Trains a task. The constructor sets up everything that the run needs, so that errors appear before step 1. Every
/// call is collective, and an error of one rank is thrown on all.
class Trainer {
 public:
  /// `task`, the same on every rank, must outlive the trainer. Plans the arena for `config` and allocates all memory.
  /// Errors: std::runtime_error if the run does not fit, or if ranks and settings are incompatible.
  Trainer(const TrainConfig& config, Task& task, const Ranks& ranks);
  /// Trains on a single rank.
  Trainer(const TrainConfig& config, Task& task);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  const MemoryPlan& plan() const;
  std::size_t steps() const;
  /// Returns the steps done by the run that this one resumes; 0 if it does not resume.
  std::size_t first_step() const { return first_step_; }
  /// Returns whether the run begins with the evaluation after first_step() steps.
  bool evaluation_due() const { return evaluation_due_; }
  /// Returns the loss scale of the next step.
  const LossScale& loss_scale() const;
  /// Returns the number of ranks that write a checkpoint.
  std::size_t checkpoint_writers() const;
  /// Returns the providers of the matrix products.
  const GemmChoice& gemm() const;

  /// Scores the current model. Errors: the task has no evaluation.
  Metrics evaluate();
  /// Trains to the end and calls this rank's `reporters`. The first rank writes best/ and last/ if the configuration
  /// names an output directory. All ranks write checkpoints when they are due; `description`, the run's configuration
  /// as JSON, is stored in each. A signal to any rank stops the run after the current step or evaluation batch: with a
  /// checkpoint and without last/, or with last/ if the run cannot write checkpoints. Errors: the run ends if a loss or
  /// the outputs of an evaluation are not finite, or if a gradient is not finite at the smallest loss scale; last/ then
  /// holds the weights of the previous step if they are finite. If a file of an evaluation cannot be written, the run
  /// ends after a checkpoint.
  RunResult run(const std::vector<Reporter*>& reporters, const std::string& description = "{}");

  /// Copies the master weights of the tensor called `name`, or the values of a state tensor, to `values` on every rank.
  void read_tensor(const std::string& name, std::span<float> values) const;

 private:
  Trainer(const TrainConfig& config, Task& task, std::unique_ptr<parallel::Communicator> own);

  std::unique_ptr<parallel::Communicator> own_;  ///< set if the trainer was given no ranks
  std::unique_ptr<RunSetup> setup_;
  std::unique_ptr<RunState> state_;
  std::size_t first_step_ = 0;
  bool evaluation_due_ = false;
};

}  // namespace mylos::train
