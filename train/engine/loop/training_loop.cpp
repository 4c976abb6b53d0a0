#include "train/engine/loop/training_loop.hpp"

#include "core/base/setting_error.hpp"
#include "core/base/stopwatch.hpp"
#include "parallel/communicator/agreement.hpp"
#include "train/engine/data_notes.hpp"
#include "train/engine/evaluation_files.hpp"
#include "train/engine/loop/training_scores.hpp"
#include "train/engine/memory/memory.hpp"
#include "train/engine/models/best_model.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <utility>

namespace mylos::train {
namespace {

nn::UpdateSettings update_settings(std::size_t update, const nn::LearningRateSchedule& schedule) {
  return {.step = update, .learning_rate = static_cast<float>(schedule.at(update))};
}

/// Returns the settings of the update of the next step.
nn::UpdateSettings next_update(const RunProgress& progress, const nn::LearningRateSchedule& schedule) {
  return update_settings(progress.steps - progress.skipped, schedule);
}

/// Returns the last update before a start, if it is known: if no step was skipped, the last step made it.
std::optional<LastUpdate> update_before(const RunProgress& start, const nn::LearningRateSchedule& schedule) {
  if (start.steps == 0 || start.skipped > 0) return std::nullopt;
  const std::size_t last = start.steps - 1;
  return LastUpdate{last, update_settings(last, schedule)};
}

/// Returns steps, skipped steps and loss scale after a step that updated the parameters, or skipped its update.
RunProgress after_step(RunProgress progress, bool updates) {
  ++progress.steps;
  if (updates) {
    progress.loss_scale.note_finite();
  } else {
    ++progress.skipped;
    progress.loss_scale.back_off();
  }
  return progress;
}

bool is_evaluated(const RunSetup& run, std::size_t step) {
  const bool is_due = step % evaluation_interval(run.config, run.task) == 0 || step == run.steps;
  return judges_models(run.config, run.task) && is_due;
}

void keep_answers(const RunSetup& run, std::size_t step) {
  parallel::on_first_rank(run.ranks.world, [&] {
    run.config.check_output();
    const std::string answers = run.task.short_answers();
    if (!answers.empty()) keep_evaluation(run.config.output, step, answers);
  });
}

void write_results(const RunSetup& run) {
  parallel::on_first_rank(run.ranks.world, [&] {
    run.config.check_output();
    run.task.write_results(run.config.output);
  });
}

/// Returns a message about the outcome of a save.
std::string saved_text(const CheckpointReport& report) {
  if (!report.error.empty()) return fmt::format("no checkpoint after step {}: {}", report.step, report.error);
  if (report.loss.empty()) return fmt::format("the checkpoint after step {} is saved", report.step);
  return fmt::format("the checkpoint after step {} is {}; a new run continues from it with {}", report.step,
                     report.file.string(), setting("resume", report.file.string()));
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
    if (requested_.signal != 0) {
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
          .best = state_.best.state().metrics,
          .joules = std::nullopt};
}

bool TrainingLoop::is_complete() const {
  return !progress_.evaluation_due && (progress_.steps >= run_.steps || state_.best.out_of_patience());
}

bool TrainingLoop::is_out_of_time() const {
  return run_.config.stop_at && std::chrono::steady_clock::now() >= *run_.config.stop_at;
}

/// Returns the signal that this rank received, or SIGUSR1 if the time is up, or 0.
int TrainingLoop::own_signal() const {
  const int signal = signals_.received();
  return signal == 0 && is_out_of_time() ? SIGUSR1 : signal;
}

RankRequests TrainingLoop::own_requests() const {
  return {.signal = own_signal(), .checkpoint = state_.checkpoints.due_by_time()};
}

void TrainingLoop::agree() {
  save_before_failing([this] { requested_ = reports_.agree(own_requests()); });
}

void TrainingLoop::end_agreement() {
  save_before_failing([this] { requested_ = reports_.end_agreement(own_requests()); });
}

/// Returns whether the memory is read after a step: every 20 steps, because the driver of a device takes long to
/// answer, and after the first and the last step.
bool TrainingLoop::is_memory_read(std::size_t index) const {
  return (index + 1) % 20 == 0 || index == first_step_ || index + 1 == run_.steps;
}

/// Launches a step, then takes and reports the results of the previous one. If an evaluation, a checkpoint or the end
/// follows, does the same with the launched step, and saves the checkpoint. Otherwise the exchange of the agreement
/// precedes the step, so the host waits for exchanges of earlier steps only, in the same place as for the results. It
/// also precedes the gathers of values, which the forward pass hides.
void TrainingLoop::train() {
  const std::size_t steps = progress_.steps + run_.step->outstanding() + 1;
  bool is_saved = state_.checkpoints.due(steps);
  bool is_awaited = is_saved || steps == run_.steps || is_evaluated(run_, steps) || run_.config.waits_for_each_step;
  const bool agrees_ahead = !is_awaited;
  reports_.tell([&](Reporter& reporter) { reporter.launch(steps); });
  if (agrees_ahead) reports_.begin_agreement(own_requests());
  // Whether the previous step was skipped is not known yet, so values are gathered anyway.
  if (run_.step->outstanding() > 0) run_.step->sync_parameters(run_.space);
  launch();
  if (run_.step->outstanding() > 1) {
    if (agrees_ahead) run_.step->wait([this] { reports_.wait_for_ranks(); });
    report_step();
  }
  if (agrees_ahead) {
    end_agreement();
    is_saved = requested_.checkpoint;
    is_awaited = is_saved || requested_.signal != 0;
  }
  if (!is_awaited) return;
  report_step();
  agree();
  run_.step->sync_parameters(run_.space);
  if (is_saved || requested_.checkpoint) steps == run_.steps ? save_complete() : save();
}

/// Launches the next step. If the results of the previous one are outstanding, gives candidates for both outcomes.
void TrainingLoop::launch() {
  const bool is_known = run_.step->outstanding() == 0;
  const RunProgress updated = is_known ? progress_ : after_step(progress_, true);
  const RunProgress skipped = is_known ? progress_ : after_step(progress_, false);
  run_.step->launch(run_.space, {.step = updated.steps,
                                 .update = {next_update(updated, run_.schedule), next_update(skipped, run_.schedule)},
                                 .loss_scale = {updated.loss_scale.value(), skipped.loss_scale.value()}});
  sent_.push(state_.sent.since_last());
}

/// Takes the results of the oldest outstanding step and updates the progress. If the step did not update the
/// parameters, the loss scale was too large, or the run stops; the device decided the same. The scale does not affect
/// the loss, so it is never the cause of a loss that is not finite.
StepReport TrainingLoop::take() {
  const RunProgress before = progress_;
  const nn::UpdateSettings update = next_update(before, run_.schedule);
  const StepResult result = run_.step->take(before.loss_scale.value());
  const bool updates = is_finite(result);
  const RunProgress after = after_step(before, updates);
  const bool has_backed_off = after.loss_scale.value() < before.loss_scale.value();
  if (!updates && !(std::isfinite(result.loss) && has_backed_off)) stop_at_step(result);
  progress_ = after;
  progress_.training_seconds += result.seconds;
  progress_.evaluation_due = is_evaluated(run_, progress_.steps);
  note_scores(result);
  // If the update was skipped, the loss after the one before is finite, so that did not spoil the weights.
  last_update_ = updates ? std::optional(LastUpdate{before.steps, update}) : std::nullopt;
  if (is_memory_read(before.steps)) memory_ = peak_resident_memory();
  const StepReport report = {
      .step = progress_.steps,
      .epoch = static_cast<double>(progress_.steps) / static_cast<double>(run_.task.steps_per_epoch()),
      .loss = result.loss,
      .gradient_norm = result.gradient_norm,
      .learning_rate = run_.schedule.at(update.step),
      .sequences = result.sequences,
      .tokens = result.tokens,
      .seconds = result.seconds,
      .flops = run_.task.model().training_flops({.samples = result.sequences, .rows = result.tokens, .longest = 0}),
      .memory = memory_,
      .sent = sent_.front(),
      .loss_scale = before.loss_scale.adapts() ? std::optional(before.loss_scale.value()) : std::nullopt,
      .skipped = !updates,
      .parts = result.parts};
  sent_.pop();
  return report;
}

/// Adds a step to what training tells about the model.
void TrainingLoop::note_scores(const StepResult& result) {
  const WorkKind work = run_.task.work();
  TrainingScores& scores = progress_.scores;
  scores.losses += result.loss;
  ++scores.steps;
  scores.predictions += work.sizes_batches ? work.count(result.tokens) : result.sequences;
  scores.hits += result.hits;
}

/// Takes and reports the results of the oldest outstanding step.
void TrainingLoop::report_step() {
  const StepReport report = take();
  reports_.tell([&](Reporter& reporter) { reporter.step(report); });
}

/// If the step's loss is not finite, the last good weights are those before the update that spoilt them. Every rank
/// gets here, because all have the same result. A step that was launched after it changed nothing.
void TrainingLoop::stop_at_step(const StepResult& result) {
  const LossScale& scale = progress_.loss_scale;
  const bool at_least = scale.adapts() && std::isfinite(result.loss);
  stop_diverged(run_,
                {.what = fmt::format("step {}: loss {}, gradient norm {}{}", progress_.steps + 1, std::abs(result.loss),
                                     std::abs(result.gradient_norm),
                                     at_least ? fmt::format(" with loss scale {}, the smallest", scale.value()) : ""),
                 .step = progress_.steps,
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

/// Runs the evaluation that is due. An evaluation stopped by a signal is dropped and stays due. Without samples for
/// one, the metrics are those of training.
void TrainingLoop::evaluate() {
  const Stopwatch watch;
  Evaluation* const evaluation = run_.task.evaluation();
  PredictionEnd end;
  EvaluationReport report{.step = progress_.steps, .seconds = 0.0, .metrics = {}};
  save_before_failing([&] {
    if (evaluation != nullptr) {
      end = run_.predictor->predict(*evaluation, [this] { return own_signal(); });
      if (!end.complete()) return;
      collect_notes(run_.ranks.world, run_.task);  // the score leaves out what any rank found damaged
      report.metrics = run_.predictor->score(*evaluation);
    }
    const Metrics of_training = training_metrics(run_.ranks.world, run_.task, progress_.scores);
    report.metrics.insert(report.metrics.end(), of_training.begin(), of_training.end());
  });
  requested_.signal = end.signal;
  if (requested_.signal != 0) return;
  if (!end.finite) stop_at_evaluation();
  report.seconds = watch.seconds();
  agree();  // before writing files, which may take long
  if (requested_.signal != 0) return;
  keep(report);
  state_.sent.since_last();
  progress_.evaluation_due = false;
  progress_.scores = {};
  reports_.tell([&](Reporter& reporter) { reporter.evaluation(report); });
  const bool stops_early = state_.best.out_of_patience() && progress_.steps < run_.steps;
  if (stops_early && run_.config.checkpoints.regular() && state_.checkpoints.enabled()) save_complete();
  agree();
}

/// Keeps the evaluation's answers and, if it is among the best so far, the model. The evaluation before step 1 is only
/// a baseline.
void TrainingLoop::keep(EvaluationReport& report) {
  const std::filesystem::path& output = run_.config.output;
  BestModel best = state_.best;
  save_before_failing([&] {
    if (!output.empty() && run_.task.evaluation() != nullptr) keep_answers(run_, report.step);
    if (report.step == 0) return;
    BestModel::Place place = BestModel::Place::passed;
    parallel::on_every_rank(run_.ranks.world, [&] { place = best.offer(report.metrics, report.step); });
    report.best = place == BestModel::Place::best;
    if (place != BestModel::Place::passed && !output.empty()) export_best(place, report.step, best);
  });
  state_.best = std::move(best);
}

/// Exports the model after `step` as the best or as one that is kept, and then removes the models that it displaced.
void TrainingLoop::export_best(BestModel::Place place, std::size_t step, const BestModel& best) {
  parallel::Communicator& ranks = run_.ranks.world;
  const std::filesystem::path& output = run_.config.output;
  const bool is_best = place == BestModel::Place::best;
  if (is_best) {
    parallel::on_first_rank(ranks, [&] {
      run_.config.check_output();
      const BestModel& before = state_.best;
      if (best.config().keep > 1 && before.state().step > 0 && before.is_exported()) {
        keep_best_as(output, before.state().step);
      }
      note_best(output, step);
    });
  }
  run_.export_model(is_best ? "best" : kept_model_path(step));
  if (is_best && run_.task.evaluation() != nullptr) write_results(run_);
  parallel::on_first_rank(ranks, [&] {
    run_.config.check_output();
    remove_other_models(output, best.state());
  });
}

CheckpointReport TrainingLoop::write_checkpoint() {
  reports_.tell([](Reporter& reporter) { reporter.flush(); });
  return state_.checkpoints.save(progress_, state_.best);
}

void TrainingLoop::save() {
  const CheckpointReport report = write_checkpoint();
  state_.sent.since_last();
  const std::string& reason = report.changed.empty() ? report.loss : report.changed;
  if (!reason.empty()) throw parallel::SharedError(reason + "; " + saved_text(report));
  // The exit codes for signals promise a checkpoint.
  if (requested_.signal != 0 && !report.error.empty()) throw parallel::SharedError(report.error);
  reports_.tell([&](Reporter& reporter) { reporter.checkpoint(report); });
}

/// Saves a run without steps left. If that fails, the run is completed before the error is reported, unless its output
/// directory is lost.
void TrainingLoop::save_complete() {
  try {
    save();
  } catch (const parallel::SharedError& error) {
    if (state_.checkpoints.is_elsewhere()) throw;
    unsaved_ = error.what();
  }
}

/// Ends the loop, with a checkpoint of the last step if the run can write one.
void TrainingLoop::stop() {
  if (state_.checkpoints.enabled() && !state_.checkpoints.holds(progress_.steps)) save();
  stopped_by_ = requested_.signal;
}

void TrainingLoop::save_before_failing(const std::function<void()>& work) {
  std::string error;
  try {
    work();
    return;
  } catch (const parallel::SharedError& failure) {
    if (!state_.checkpoints.enabled()) throw;
    while (run_.step->outstanding() > 0) take();  // the parameters are those after the last launched step
    state_.checkpoints.forget_lost();
    if (progress_.steps == first_step_ || state_.checkpoints.holds(progress_.steps)) throw;
    error = failure.what();
  }
  throw parallel::SharedError(fmt::format("{}; {}", error, saved_at_the_end()));
}

/// Saves a checkpoint of a run that ends with an error. Returns a message about the outcome.
std::string TrainingLoop::saved_at_the_end() {
  try {
    return saved_text(write_checkpoint());
  } catch (const parallel::SharedError& failure) {
    return saved_text({.step = progress_.steps, .error = failure.what()});
  }
}

}  // namespace mylos::train
