#pragma once

#include "train/engine/task.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

/// Reports the progress and the outcome of a run. Progress lines, files and charts are reporters.
namespace mylos::train {

/// Seconds of a step that this rank spent exclusively in each part. The rest of the step is the forward pass, the
/// backward pass and the norm of the gradient.
struct StepParts {
  double data = 0.0;  ///< making batches; in a device build only for the first step, whose kernels wait for it
  std::optional<double> exchange = {};  ///< waiting for other ranks; nullopt in a device build
  /// The optimizer, and the synchronisation of the model's values after the previous update, without the waits in
  /// `exchange`. nullopt in a device build, where both run during the next step.
  std::optional<double> update = {};
};

struct RunStart {
  std::size_t steps = 0;       ///< total steps of the run
  std::size_t first_step = 0;  ///< steps done before this start
  std::size_t steps_per_epoch = 0;
  bool evaluation_due = false;  ///< the run begins with the evaluation after `first_step` steps
  WorkKind work = {};           ///< unit of work that steps count
};

struct StepReport {
  std::size_t step = 0;  ///< from 1
  double epoch = 0.0;    ///< passes over the samples so far; 1.5 is the middle of the second
  double loss = 0.0;
  double gradient_norm = 0.0;  ///< before clipping
  double learning_rate = 0.0;
  std::size_t sequences = 0;  ///< samples, named by RunStart::work
  std::size_t tokens = 0;     ///< rows of all samples, without padding, named by RunStart::work
  double seconds = 0.0;
  double flops = 0.0;                     ///< operations of the step on all ranks, by formula
  std::size_t memory = 0;                 ///< peak resident bytes of this process, at most 20 steps ago
  std::uint64_t sent = 0;                 ///< bytes that this rank sent to other ranks in the step
  std::optional<double> loss_scale = {};  ///< loss scale of the step, if the run adapts one
  bool skipped = false;                   ///< no update, because the gradient was not finite with this loss scale
  StepParts parts = {};

  double tokens_per_second() const { return per_second(static_cast<double>(tokens), seconds); }
};

struct EvaluationReport {
  std::size_t step = 0;  ///< number of completed steps
  double seconds = 0.0;
  Metrics metrics;
  bool best = false;
};

struct CheckpointReport {
  std::size_t step = 0;  ///< number of completed steps
  std::filesystem::path file = {};
  std::size_t bytes = 0;     ///< size of its arrays
  double seconds = 0.0;      ///< seconds until it was on disk
  std::string error = {};    ///< reason of a failed write, if the run continues without it
  std::string warning = {};  ///< failure after the checkpoint was complete; empty if there was none
  std::string loss = {};     ///< reason why `file` is not in the output directory, and the run ends
  std::string changed = {};  ///< what has changed in the data, for which the run ends
};

/// The outcome of a run.
struct RunResult {
  std::size_t steps = 0;          ///< completed steps
  std::size_t skipped = 0;        ///< steps skipped because of too large a loss scale, over all starts of the run
  int signal = 0;                 ///< signal that ended the run early, or 0
  bool stopped_early = false;     ///< patience ran out
  bool out_of_time = false;       ///< TrainConfig::stop_at was reached; `signal` is then SIGUSR1
  double training_seconds = 0.0;  ///< seconds of training steps, over all starts of the run
  double earlier_seconds = 0.0;   ///< part of `training_seconds` in earlier starts
  Metrics best;                   ///< metrics of the evaluation in best/
  std::optional<double> joules;   ///< energy used by the run's GPUs over all starts, if known; set by the caller
};

class Reporter {
 public:
  virtual ~Reporter() = default;
  virtual void start(const RunStart&) {}
  /// Called before the work of a step, from 1, is launched. The report of the step before may still follow.
  virtual void launch(std::size_t) {}
  virtual void step(const StepReport&) {}
  virtual void evaluation(const EvaluationReport&) {}
  /// Called before a checkpoint is written: flushes to disk what was reported, because no later start repeats it.
  virtual void flush() {}
  virtual void checkpoint(const CheckpointReport&) {}
  /// Called last, also if the run ends early.
  virtual void finish() {}
};

}  // namespace mylos::train
