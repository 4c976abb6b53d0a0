#pragma once

#include "core/base/signals.hpp"
#include "train/engine/agreed_reports.hpp"
#include "train/engine/divergence.hpp"
#include "train/engine/run_parts.hpp"
#include "train/engine/run_result.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace mylos::train {

/// The progress of a run: steps, evaluations and checkpoints, until it is complete or a signal stops it. After a step
/// the ranks agree on a signal, then a checkpoint is saved if one is due or the run is to stop, and only then the step
/// is evaluated: no evaluation and no export begins after a signal and before its checkpoint. A checkpoint says whether
/// the evaluation of its step is still to be done. Every call is collective.
class TrainingLoop {
 public:
  /// All outlive it. `progress` says where the run goes on, and is kept up to date.
  TrainingLoop(const RunParts& parts, RunProgress& progress, AgreedReports& reports, const SignalGuard& signals);

  /// Trains to the end. Where the result has a signal, the run has stopped and, if it can write checkpoints, its
  /// directory has one after the result's steps. Errors, on every rank alike: those of Trainer::run.
  RunResult run();
  /// Why a complete run could not be saved, which is an error when its models are written; empty where it could.
  const std::string& unsaved() const { return unsaved_; }

 private:
  bool is_complete() const;
  bool is_out_of_time() const;
  int own_signal() const;
  void agree();
  void train();
  bool take(const StepProgress& progress, const StepResult& result);
  void evaluate();
  void keep(EvaluationReport& report);
  void save();
  void save_complete();
  void stop();
  void save_before_failing(const std::function<void()>& work);
  [[noreturn]] void stop_at_step(const StepProgress& progress, const StepResult& result);
  [[noreturn]] void stop_at_evaluation();
  std::string withdraw_checkpoint();
  std::string saved_at_the_end();

  RunParts run_;
  RunProgress& progress_;
  AgreedReports& reports_;
  const SignalGuard& signals_;
  std::size_t first_step_;
  int requested_ = 0;   ///< the signal that all ranks know of
  int stopped_by_ = 0;  ///< the signal that ended the loop, or 0
  std::optional<LastUpdate> last_update_;
  std::string unsaved_;
};

}  // namespace mylos::train
