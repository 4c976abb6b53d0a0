#pragma once

#include "core/base/process/signals.hpp"
#include "parallel/communicator/communicator.hpp"
#include "train/engine/loop/agreed_reports.hpp"
#include "train/engine/loop/divergence.hpp"
#include "train/engine/loop/run_checkpoints.hpp"
#include "train/engine/loop/run_setup.hpp"
#include "train/engine/models/best_model.hpp"
#include "train/engine/report.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <string>
#include <utility>

namespace mylos::train {

/// Counts the bytes that this rank sends to other ranks between calls.
class SentBytes {
 public:
  /// Returns the bytes since the last call, or since construction.
  std::uint64_t since_last() {
    const std::uint64_t before = std::exchange(last_, parallel::sent_bytes());
    return last_ - before;
  }

 private:
  std::uint64_t last_ = parallel::sent_bytes();
};

/// The state of a run beside parameters and optimizer.
struct RunState {
  /// The state before step 1.
  explicit RunState(const RunSetup& setup);

  RunCheckpoints checkpoints;
  BestModel best;
  RunProgress progress;
  SentBytes sent;  ///< counts across steps, because sends started by an update continue after it
};

/// Runs the steps, evaluations and checkpoints of a run until it is complete or a signal stops it. A step is launched
/// before the results of the previous one are taken and reported. Before an evaluation, a checkpoint or the end, the
/// results of all launched steps are taken. Several ranks agree on signals and errors of reporters before a step is
/// launched, and learn of the outcome after it; a rank alone agrees after the launch. If no step is outstanding, ranks
/// first agree, then save a checkpoint if one is due or the run must stop, and evaluate last: after an agreed signal no
/// step is launched, and no evaluation or export starts before the checkpoint. A checkpoint records whether the
/// evaluation of its step is still due. Every call is collective.
class TrainingLoop {
 public:
  /// The arguments must outlive this object. The progress in `state` gives the starting point.
  TrainingLoop(const RunSetup& run, RunState& state, AgreedReports& reports, const SignalGuard& signals);

  /// Trains to the end. If the result has a signal, the run was stopped, and its directory holds a checkpoint after the
  /// result's steps if it can write checkpoints. Errors, the same on every rank: those of Trainer::run.
  RunResult run();
  /// Does work whose error, the same on every rank, ends the run. If it fails, first saves the progress of this start.
  void save_before_failing(const std::function<void()>& work);
  /// Returns the reason why a complete run could not be saved, or an empty string. The caller throws it after writing
  /// the models.
  const std::string& unsaved() const { return unsaved_; }

 private:
  bool is_complete() const;
  bool is_out_of_time() const;
  int own_signal() const;
  RankRequests own_requests() const;
  void agree();
  void end_agreement();
  bool is_memory_read(std::size_t index) const;
  void train();
  void launch();
  StepReport take();
  void note_scores(const StepResult& result);
  void report_step();
  void evaluate();
  void keep(EvaluationReport& report);
  void export_best(BestModel::Place place, std::size_t step, const BestModel& best);
  CheckpointReport write_checkpoint();
  void save();
  void save_complete();
  void stop();
  [[noreturn]] void stop_at_step(const StepResult& result);
  [[noreturn]] void stop_at_evaluation();
  std::string withdraw_checkpoint();
  std::string saved_at_the_end();

  const RunSetup& run_;
  RunState& state_;
  RunProgress& progress_;  ///< that of state_, after the last step whose results were taken
  AgreedReports& reports_;
  const SignalGuard& signals_;
  std::size_t first_step_;
  std::queue<std::uint64_t> sent_;  ///< for each outstanding step, the bytes that this rank sent
  std::size_t memory_ = 0;          ///< the last reading of the resident memory
  RankRequests requested_;          ///< what all ranks agreed on
  int stopped_by_ = 0;              ///< the signal that ended the loop, or 0
  std::optional<LastUpdate> last_update_;
  std::string unsaved_;
};

}  // namespace mylos::train
