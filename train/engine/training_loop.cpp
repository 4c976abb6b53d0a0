#include "train/engine/training_loop.hpp"

#include "core/base/setting_error.hpp"
#include "parallel/communicator/agreement.hpp"
#include "train/engine/evaluation_files.hpp"
#include "train/engine/memory.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <utility>

namespace mylos::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Returns the last update before a start, if it is known: if no step was skipped, the last step made it.
std::optional<LastUpdate> update_before(const RunProgress& start, const nn::LearningRateSchedule& schedule) {
  if (start.steps == 0 || start.skipped > 0) return std::nullopt;
  const std::size_t last = start.steps - 1;
  return LastUpdate{last, {.step = last, .learning_rate = static_cast<float>(schedule.at(last))}};
}

bool is_evaluated(const RunSetup& run, std::size_t step) {
  const std::size_t epochs = run.config.evaluate_every_epochs, epoch = run.task.steps_per_epoch();
  const std::size_t every = epochs > 0                      ? epochs * epoch
                            : run.config.evaluate_every > 0 ? run.config.evaluate_every
                                                            : epoch;
  return run.task.evaluation() != nullptr && (step % every == 0 || step == run.steps);
}

void keep_answers(const RunSetup& run, std::size_t step) {
  parallel::on_first_rank(run.ranks.world, [&] {
    const std::string answers = run.task.short_answers();
    if (!answers.empty()) keep_evaluation(run.config.output, step, answers);
  });
}

void write_results(const RunSetup& run) {
  parallel::on_first_rank(run.ranks.world, [&] { run.task.write_results(run.config.output); });
}

}  // namespace

TrainingLoop::TrainingLoop(const RunSetup& run, RunState& state, AgreedReports& reports, const SignalGuard& signals)
    : run_(run),
      state_(state),
      progress_(state.progress),
      reports_(reports),
      signals_(signals),
      first_step_(state.progress.steps),
      last_update_(update_before(state.progress, run.schedule)) {}

RunResult TrainingLoop::run() {
  const double earlier_seconds = progress_.training_seconds;
  agree();
  while (!is_complete() && stopped_by_ == 0) {
    if (requested_ != 0) {
      stop();
    } else if (progress_.evaluation_due) {
      evaluate();
    } else {
      train();
    }
  }
  return {.steps = progress_.steps,
          .skipped = progress_.skipped,
          .signal = stopped_by_,
          .stopped_early = stopped_by_ == 0 && state_.best.out_of_patience(),
          .out_of_time = stopped_by_ == SIGUSR1 && is_out_of_time(),
          .training_seconds = progress_.training_seconds,
          .earlier_seconds = earlier_seconds,
          .best = state_.best.metrics(),
          .joules = std::nullopt};
}

bool TrainingLoop::is_complete() const {
  return !progress_.evaluation_due && (progress_.steps >= run_.steps || state_.best.out_of_patience());
}

bool TrainingLoop::is_out_of_time() const { return run_.config.stop_at && Clock::now() >= *run_.config.stop_at; }

/// Returns the signal that this rank received, or SIGUSR1 if the time is up, or 0.
int TrainingLoop::own_signal() const {
  const int signal = signals_.received();
  return signal == 0 && is_out_of_time() ? SIGUSR1 : signal;
}

void TrainingLoop::agree() {
  save_before_failing([this] { requested_ = reports_.agree(own_signal()); });
}

/// Returns whether the memory is read after a step: every 20 steps, because the driver of a device takes long to
/// answer, and after the first and the last step.
bool TrainingLoop::is_memory_read(std::size_t index) const {
  return (index + 1) % 20 == 0 || index == first_step_ || index + 1 == run_.steps;
}

/// Runs one step and saves the checkpoint that is due after it.
void TrainingLoop::train() {
  const Clock::time_point begin = Clock::now();
  const std::size_t index = progress_.steps, update = index - progress_.skipped;
  const StepProgress progress{index, update, run_.schedule.at(update), progress_.loss_scale.value()};
  const StepResult result = run_.step->run(run_.space, progress);
  if (is_memory_read(index)) memory_ = peak_resident_memory();
  const bool adapts = progress_.loss_scale.adapts(), taken = take(progress, result);
  const StepReport report = {
      .step = index + 1,
      .epoch = static_cast<double>(index + 1) / static_cast<double>(run_.task.steps_per_epoch()),
      .loss = result.loss,
      .gradient_norm = result.gradient_norm,
      .learning_rate = progress.learning_rate,
      .sequences = result.sequences,
      .tokens = result.tokens,
      .seconds = seconds_after_report_ + seconds_since(begin),
      .flops = run_.task.model().training_flops({.samples = result.sequences, .rows = result.tokens, .longest = 0}),
      .memory = memory_,
      .sent = state_.sent.since_last(),
      .loss_scale = adapts ? std::optional(progress.loss_scale) : std::nullopt,
      .skipped = !taken,
      .parts = result.parts};
  progress_.steps = report.step;
  progress_.training_seconds += report.seconds;
  progress_.evaluation_due = is_evaluated(run_, report.step);
  reports_.tell([&](Reporter& reporter) { reporter.step(report); });
  const Clock::time_point reported = Clock::now();
  // Ranks agree first: behind the gathers of sync_parameters, the agreement would keep the next step from beginning
  // before all units are gathered.
  agree();
  const bool is_saved = state_.checkpoints.due(progress_.steps);
  if (taken) run_.step->sync_parameters(run_.space);
  seconds_after_report_ = seconds_since(reported);
  if (is_saved) progress_.steps == run_.steps ? save_complete() : save();
}

/// Returns whether the step updated the parameters. If not, the loss scale was too large, or the run stops. The scale
/// does not affect the loss, so it is never the cause of a loss that is not finite.
bool TrainingLoop::take(const StepProgress& progress, const StepResult& result) {
  if (is_finite(result)) {
    progress_.loss_scale.note_finite();
    last_update_ = {.step = progress.step,
                    .settings = {.step = progress.update, .learning_rate = static_cast<float>(progress.learning_rate)}};
    return true;
  }
  if (!std::isfinite(result.loss) || !progress_.loss_scale.back_off()) stop_at_step(progress, result);
  last_update_.reset();  // the loss after it is finite, so it did not spoil the weights
  ++progress_.skipped;
  return false;
}

/// If the step's loss is not finite, the last good weights are those before the update that spoilt them. Every rank
/// gets here, because all have the same result.
void TrainingLoop::stop_at_step(const StepProgress& progress, const StepResult& result) {
  const LossScale& scale = progress_.loss_scale;
  const bool at_least = scale.adapts() && std::isfinite(result.loss);
  stop_diverged(run_,
                {.what = fmt::format("step {}: loss {}, gradient norm {}{}", progress.step + 1, std::abs(result.loss),
                                     std::abs(result.gradient_norm),
                                     at_least ? fmt::format(" with loss scale {}, the smallest", scale.value()) : ""),
                 .step = progress.step,
                 .spoilt = std::isfinite(result.loss) ? std::nullopt : last_update_});
}

/// The last update spoilt the weights, because the loss before it was finite. Before step 1 there is no update.
void TrainingLoop::stop_at_evaluation() {
  if (progress_.steps == 0) {
    throw parallel::SharedError(
        "the evaluation before step 1: the model's outputs are not finite: its weights are "
        "damaged, or too large for " +
        setting("precision", to_string(run_.config.precision)));
  }
  stop_diverged(
      run_, {.what = fmt::format("the evaluation after step {}: the model's outputs are not finite", progress_.steps),
             .step = progress_.steps,
             .spoilt = last_update_,
             .keeps_weights = last_update_.has_value(),
             .checkpoint = withdraw_checkpoint()});
}

/// Withdraws the checkpoint of this step, which was saved before the evaluation showed that its weights are spoilt; a
/// later start would resume from it and end here again. Returns a message: that it was removed or, if another start
/// wrote it, its name.
std::string TrainingLoop::withdraw_checkpoint() {
  const std::size_t steps = progress_.steps;
  if (!state_.checkpoints.enabled() || !state_.checkpoints.holds(steps)) return {};
  if (steps == first_step_) {
    return fmt::format("{} contains these weights: remove it to continue from an earlier checkpoint; ",
                       run_.config.checkpoints.resume.string());
  }
  state_.checkpoints.withdraw(steps);
  return fmt::format("the checkpoint after step {} is removed; ", steps);
}

/// Runs the evaluation that is due. An evaluation stopped by a signal is dropped and stays due.
void TrainingLoop::evaluate() {
  const Clock::time_point begin = Clock::now();
  Evaluation& evaluation = *run_.task.evaluation();
  PredictionEnd end;
  EvaluationReport report{.step = progress_.steps, .seconds = 0.0, .metrics = {}};
  save_before_failing([&] {
    end = run_.predictor->predict(evaluation, [this] { return own_signal(); });
    if (end.complete()) report.metrics = run_.predictor->score(evaluation);
  });
  requested_ = end.signal;
  if (requested_ != 0) return;
  if (!end.finite) stop_at_evaluation();
  report.seconds = seconds_since(begin);
  agree();  // before writing files, which may take long
  if (requested_ != 0) return;
  keep(report);
  state_.sent.since_last();
  progress_.evaluation_due = false;
  reports_.tell([&](Reporter& reporter) { reporter.evaluation(report); });
  const bool stops_early = state_.best.out_of_patience() && progress_.steps < run_.steps;
  if (stops_early && run_.config.checkpoints.regular() && state_.checkpoints.enabled()) save_complete();
  agree();
}

/// Keeps the evaluation's answers and, if it is the best so far, the model. The evaluation before step 1 is only a
/// baseline.
void TrainingLoop::keep(EvaluationReport& report) {
  const std::filesystem::path& output = run_.config.output;
  BestModel best = state_.best;
  save_before_failing([&] {
    if (!output.empty()) keep_answers(run_, report.step);
    if (report.step == 0) return;
    parallel::on_every_rank(run_.ranks.world, [&] { report.best = best.offer(report.metrics); });
    if (!report.best || output.empty()) return;
    run_.export_model("best");
    write_results(run_);
  });
  state_.best = std::move(best);
}

void TrainingLoop::save() {
  const CheckpointReport report = state_.checkpoints.save(progress_, state_.best);
  state_.sent.since_last();
  // The exit codes for signals promise a checkpoint.
  if (requested_ != 0 && !report.error.empty()) throw parallel::SharedError(report.error);
  reports_.tell([&](Reporter& reporter) { reporter.checkpoint(report); });
}

/// Saves a run without steps left. If that fails, the run is completed before the error is reported.
void TrainingLoop::save_complete() {
  try {
    save();
  } catch (const parallel::SharedError& error) {
    unsaved_ = error.what();
  }
}

/// Ends the loop, with a checkpoint of the last step if the run can write one.
void TrainingLoop::stop() {
  if (state_.checkpoints.enabled() && !state_.checkpoints.holds(progress_.steps)) save();
  stopped_by_ = requested_;
}

/// Does work whose error, the same on every rank, ends the run. If it fails, first saves the progress of this start.
void TrainingLoop::save_before_failing(const std::function<void()>& work) {
  std::string error;
  try {
    work();
    return;
  } catch (const parallel::SharedError& failure) {
    const bool is_saved = progress_.steps == first_step_ || state_.checkpoints.holds(progress_.steps);
    if (is_saved || !state_.checkpoints.enabled()) throw;
    error = failure.what();
  }
  throw parallel::SharedError(fmt::format("{}; {}", error, saved_at_the_end()));
}

/// Saves a checkpoint of a run that ends with an error. Returns a message about the outcome.
std::string TrainingLoop::saved_at_the_end() {
  std::string error;
  try {
    error = state_.checkpoints.save(progress_, state_.best).error;
  } catch (const parallel::SharedError& failure) {
    error = failure.what();
  }
  return error.empty() ? fmt::format("the checkpoint after step {} is saved", progress_.steps)
                       : fmt::format("no checkpoint after step {}: {}", progress_.steps, error);
}

}  // namespace mylos::train
