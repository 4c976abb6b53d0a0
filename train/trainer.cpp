#include "train/trainer.hpp"

#include "core/error.hpp"
#include "core/kernels/scratch.hpp"
#include "parallel/agreement.hpp"
#include "parallel/file_work.hpp"
#include "train/agreed_reports.hpp"
#include "train/best_model.hpp"
#include "train/evaluation_files.hpp"
#include "train/gemm_selection.hpp"
#include "train/initial_parameters.hpp"
#include "train/memory.hpp"
#include "train/model_export.hpp"
#include "train/model_predictor.hpp"
#include "train/run_bounds.hpp"
#include "train/run_checkpoints.hpp"
#include "train/signals.hpp"
#include "train/training_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace mylos::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// What `make` makes, where it throws on no rank; else the error of one is that of all. `make` is not collective.
template <class Make>
auto made_on_every_rank(parallel::Communicator& ranks, const Make& make) {
  std::optional<decltype(make())> made;
  parallel::on_every_rank(ranks, [&] { made.emplace(make()); });
  return std::move(*made);
}

/// Bytes that each rank may still take, where those of a node, or of a device, share what is free.
std::size_t available_on_every_rank(const Ranks& ranks) {
  ranks.world.barrier("free memory");  // so that no rank takes what another has not counted
  const parallel::RankPlace& mine = ranks.places[ranks.world.rank()];
  const auto sharing = std::ranges::count_if(ranks.places, [&](const parallel::RankPlace& place) {
    return place.node == mine.node && place.device == mine.device;
  });
  const std::size_t free = std::min<std::size_t>(available_memory(), INT64_MAX) / static_cast<std::size_t>(sharing);
  return static_cast<std::size_t>(-parallel::maximum(ranks.world, -static_cast<std::int64_t>(free)));
}

/// Kernels sum in the order of their threads.
void check_threads(std::span<const std::int64_t> threads) {
  const auto [fewest, most] = std::ranges::minmax(threads);
  if (fewest == most) return;
  fail(fmt::format("--deterministic: ranks have from {} to {} threads; give all as many with OMP_NUM_THREADS", fewest,
                   most));
}

MemoryPlan make_plan(const Ranks& ranks, const ExecutionSpace& space, const TrainConfig& config, const Task& task,
                     std::size_t steps) {
  const std::size_t available = available_on_every_rank(ranks);
  const std::vector<std::int64_t> threads = parallel::gather(ranks.world, std::int64_t{space.concurrency()});
  const RankCounts counts = count_ranks(ranks.places);
  return made_on_every_rank(ranks.world, [&] {
    if (config.parallel.deterministic) check_threads(threads);
    return plan_memory(task, config, steps, available, counts);
  });
}

std::unique_ptr<nn::Optimizer> make_optimizer(const OptimizerConfig& config, const ParameterTable& table,
                                              std::span<const ParameterSlice> slices) {
  if (config.kind == OptimizerKind::sgd) return nn::make_sgd(config.sgd, table, slices);
  return nn::make_adamw(config.adamw, table, slices);
}

GemmChoice choose_gemm(const ExecutionSpace& space, const TrainConfig& config, const Task& task,
                       const MemoryPlan& plan) {
  if (config.parallel.deterministic && config.gemm.provider == GemmConfig::automatic && !config.gemm.tf32) {
    return config.gemm.recorded.value_or(GemmChoice{default_gemm_provider(), {}});  // no timing chooses
  }
  return select_gemm(space, config.gemm, products_of_run(task.model(), plan.largest, evaluation_shape(task)));
}

/// The run's providers of products, chosen by the first rank, and in `plan` what they take: what they copy, and what
/// choosing them made resident.
Gemm ready_gemm(const Ranks& ranks, const ExecutionSpace& space, const TrainConfig& config, const Task& task,
                MemoryPlan& plan) {
  const std::string chosen =
      parallel::on_first_rank(ranks.world, [&] { return to_json(choose_gemm(space, config, task, plan)).dump(); });
  Gemm gemm = made_on_every_rank(
      ranks.world, [&] { return Gemm(parse_gemm_choice(nlohmann::json::parse(chosen), "the choice of rank 0")); });
  plan.workspace = gemm.workspace_bytes(largest_products(task, plan));
  note_resident(plan);
  return gemm;
}

}  // namespace

struct Trainer::State {
  State(const TrainConfig& configuration, Task& trained, Ranks given)
      : config(configuration),
        task(trained),
        ranks(std::move(given)),
        steps(total_steps(configuration, trained)),
        plan(make_plan(ranks, space, configuration, trained, steps)),
        schedule(learning_rate_schedule(configuration, steps)),
        gemm(ready_gemm(ranks, space, configuration, trained, plan)),
        mesh(ranks.world, plan.layout.shards),
        store(made_on_every_rank(ranks.world, [this] { return make_store(); })),
        mode(parallel::make_parameter_mode(plan.mode, mesh, store)),
        optimizer(make_optimizer(configuration.optimizer, store.table(), mode->slices())),
        arena(made_on_every_rank(ranks.world, [this] { return Arena("mylos::activations", plan.activations); })),
        step({trained, store, *mode, *optimizer, gemm, arena, ranks.world, configuration.recompute},
             {.steps = steps,
              .largest_batch = largest_global_batch(trained, steps),
              .micro_batch = plan.largest,
              .limit = plan.limit,
              .sharing = plan.layout.sharing,
              .clip = configuration.clip,
              .seed = configuration.seed}),
        predictor(ranks.world, space, trained.model(), store, mode->schedule(), gemm, arena, evaluation_shape(trained)),
        checkpoints({ranks.world, store, *mode, *optimizer}, config,
                    {.steps = steps, .steps_per_epoch = trained.steps_per_epoch()}),
        best(configuration.best_by, configuration.patience),
        loss_scale(first_loss_scale(configuration.precision, configuration.initial_loss_scale)) {
    ranks.world.set_bucket(config.parallel.bucket);
    parallel::on_every_rank(ranks.world, [this] {
      const parallel::FileWork loading;
      fill_parameters(task, config.seed, store, *mode);
      reserve_scratch(space, plan.scratch);
    });
    resume();
    sent = parallel::sent_bytes();
    mode->publish_values(space);
  }
  State(const TrainConfig& configuration, Task& trained, std::unique_ptr<parallel::Communicator> self)
      : State(configuration, trained, Ranks{*self, {parallel::RankPlace{}}}) {
    own = std::move(self);
  }

  ParameterStore make_store() const {
    return {task.model().table(), config.precision, ParameterStore::Purpose::training,
            parallel::store_layout(plan.layout.mode, plan.layout.shards)};
  }
  StepReport run_step(std::size_t index);
  bool take(const StepCourse& course, const StepResult& result);
  std::uint64_t sent_since_last() {
    const std::uint64_t before = std::exchange(sent, parallel::sent_bytes());
    return sent - before;
  }
  EvaluationReport evaluate(std::size_t steps_done);
  void export_model(const char* name);
  void write_results();
  void keep_answers(std::size_t steps_done);
  [[noreturn]] void stop_diverged(std::size_t index, const StepResult& result);
  bool weights_are_finite();
  bool due_for_evaluation(std::size_t steps_done) const;
  void resume();
  void save_checkpoint(AgreedReports& reports, const RunResult& result);
  void train(AgreedReports& reports, const SignalGuard& signals, RunResult& result);
  bool is_out_of_time() const { return config.stop_at && Clock::now() >= *config.stop_at; }
  /// The signal that came, or SIGUSR1 where the time is up, or 0.
  int reason_to_stop(const SignalGuard& signals) const {
    const int signal = signals.received();
    return signal == 0 && is_out_of_time() ? SIGUSR1 : signal;
  }

  std::unique_ptr<parallel::Communicator> own;  ///< of a trainer that was given no ranks
  TrainConfig config;
  Task& task;
  Ranks ranks;
  ExecutionSpace space;
  std::size_t steps;
  MemoryPlan plan;
  nn::LearningRateSchedule schedule;
  Gemm gemm;
  parallel::Mesh mesh;
  ParameterStore store;
  std::unique_ptr<parallel::ParameterMode> mode;
  std::unique_ptr<nn::Optimizer> optimizer;
  Arena arena;
  TrainingStep step;
  ModelPredictor predictor;
  RunCheckpoints checkpoints;
  BestModel best;
  RunProgress start;  ///< where the run goes on
  LossScale loss_scale;
  std::size_t skipped = 0;  ///< steps that updated nothing
  /// Bytes when the last step, or what came after it, had ended: what an update begins to send goes on between steps.
  std::uint64_t sent = 0;
  /// The last one of this start of the run, and the step that made it.
  std::optional<nn::UpdateSettings> last_update;
  std::size_t last_updated = 0;
};

void Trainer::State::resume() {
  if (config.checkpoints.resume.empty()) return;
  start = checkpoints.resume(best);
  loss_scale = start.loss_scale;
  skipped = start.skipped;
}

StepReport Trainer::State::run_step(std::size_t index) {
  const Clock::time_point begin = Clock::now();
  const std::size_t update = index - skipped;
  const StepCourse course{index, update, schedule.at(update), loss_scale.value()};
  const StepResult result = step.run(space, course);
  const bool adapts = loss_scale.adapts(), taken = take(course, result);
  return {.step = index + 1,
          .epoch = static_cast<double>(index + 1) / static_cast<double>(task.steps_per_epoch()),
          .loss = result.loss,
          .gradient_norm = result.gradient_norm,
          .learning_rate = course.learning_rate,
          .sequences = result.sequences,
          .tokens = result.tokens,
          .seconds = seconds_since(begin),
          .flops = task.model().training_flops({.samples = result.sequences, .rows = result.tokens, .longest = 0}),
          .memory = peak_resident_memory(),
          .sent = sent_since_last(),
          .loss_scale = adapts ? std::optional(course.loss_scale) : std::nullopt,
          .skipped = !taken,
          .parts = result.parts};
}

/// Whether the step updated anything. Where it did not, the loss scale was too large, or the run stops. The scale has
/// no part in a loss, so that one which is not finite is never its doing.
bool Trainer::State::take(const StepCourse& course, const StepResult& result) {
  if (is_finite(result)) {
    loss_scale.note_finite();
    last_update = {.step = course.update, .learning_rate = static_cast<float>(course.learning_rate)};
    last_updated = course.step;
    return true;
  }
  if (!std::isfinite(result.loss) || !loss_scale.back_off()) stop_diverged(course.step, result);
  ++skipped;
  return false;
}

/// Keeps the weights of the last finite loss: where this step's loss is none, those before the update that spoilt them.
/// Every rank comes here, because all have the same result.
void Trainer::State::stop_diverged(std::size_t index, const StepResult& result) {
  std::string kept;
  if (!config.output.empty()) {
    const bool spoilt = last_update && !std::isfinite(result.loss);
    if (spoilt) {
      optimizer->revert(space, *last_update);
      mode->publish_values(space);
    }
    if (weights_are_finite()) {
      export_model("last");
      kept = fmt::format("last/ holds the weights that step {} began with{}; ", 1 + (spoilt ? last_updated : index),
                         spoilt ? ", to the rounding of its update" : "");
    }
  }
  const bool at_least = loss_scale.adapts() && std::isfinite(result.loss);
  parallel::on_every_rank(ranks.world, [&] {
    fail(
        fmt::format("step {}: loss {}, gradient norm {}{}: the run stops; {}use a smaller --learning-rate or a longer "
                    "--warmup{}",
                    index + 1, std::abs(result.loss), std::abs(result.gradient_norm),
                    at_least ? fmt::format(" with loss scale {}, the least", loss_scale.value()) : "", kept,
                    loss_scale.adapts() ? ", or --precision bfloat16 or float, for half ends at 65504" : ""));
  });
  std::abort();  // not reached
}

bool Trainer::State::weights_are_finite() {
  bool finite = true;
  read_parameters(store, *mode, [&](const ParameterRow&, std::size_t, std::span<const float> values) {
    finite = finite && std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
  });
  return finite;
}

EvaluationReport Trainer::State::evaluate(std::size_t steps_done) {
  const Clock::time_point begin = Clock::now();
  Metrics metrics = predictor.evaluate(*task.evaluation());
  sent_since_last();
  return {.step = steps_done, .seconds = seconds_since(begin), .metrics = std::move(metrics)};
}

void Trainer::State::export_model(const char* name) {
  train::export_model(ranks.world, task, store, *mode, config.output / name);
  sent_since_last();
}

void Trainer::State::write_results() {
  parallel::on_first_rank(ranks.world, [this] {
    task.write_results(config.output);
    return std::string();
  });
}

void Trainer::State::keep_answers(std::size_t steps_done) {
  if (config.output.empty()) return;
  parallel::on_first_rank(ranks.world, [&] {
    const std::string answers = task.short_answers();
    if (!answers.empty()) keep_evaluation(config.output, steps_done, answers);
    return std::string();
  });
}

bool Trainer::State::due_for_evaluation(std::size_t steps_done) const {
  const std::size_t every = config.evaluate_every > 0 ? config.evaluate_every : task.steps_per_epoch();
  return task.evaluation() != nullptr && (steps_done % every == 0 || steps_done == steps);
}

void Trainer::State::save_checkpoint(AgreedReports& reports, const RunResult& result) {
  const CheckpointReport report = checkpoints.save({result.steps, skipped, loss_scale, result.training_seconds}, best);
  sent_since_last();
  // Exit codes of signals promise a checkpoint.
  if (result.signal != 0) ensure(report.error.empty(), report.error);
  reports.tell([&](Reporter& reporter) { reporter.checkpoint(report); });
}

void Trainer::State::train(AgreedReports& reports, const SignalGuard& signals, RunResult& result) {
  result.stopped_early = best.out_of_patience();  // where a run that had stopped so goes on
  result.signal = reports.agree(reason_to_stop(signals));
  while (result.steps < steps && !result.stopped_early && result.signal == 0) {
    const StepReport report = run_step(result.steps);
    result.training_seconds += report.seconds;
    ++result.steps;
    reports.tell([&](Reporter& reporter) { reporter.step(report); });
    if (due_for_evaluation(result.steps)) {
      EvaluationReport evaluation = evaluate(result.steps);
      keep_answers(result.steps);
      parallel::on_every_rank(ranks.world, [&] { evaluation.best = best.offer(evaluation.metrics); });
      if (evaluation.best && !config.output.empty()) {
        export_model("best");
        write_results();
      }
      reports.tell([&](Reporter& reporter) { reporter.evaluation(evaluation); });
      result.stopped_early = best.out_of_patience();
    }
    result.signal = reports.agree(reason_to_stop(signals));
    if (checkpoints.due(result.steps) || (result.signal != 0 && checkpoints.enabled())) {
      save_checkpoint(reports, result);
    }
  }
  result.skipped = skipped;
  result.out_of_time = result.signal == SIGUSR1 && is_out_of_time();
}

Trainer::Trainer(const TrainConfig& config, Task& task, const Ranks& ranks)
    : state_(std::make_unique<State>(config, task, ranks)) {}
Trainer::Trainer(const TrainConfig& config, Task& task)
    : state_(std::make_unique<State>(config, task, parallel::make_self_communicator())) {}
Trainer::~Trainer() = default;

const MemoryPlan& Trainer::plan() const { return state_->plan; }
std::size_t Trainer::steps() const { return state_->steps; }
std::size_t Trainer::first_step() const { return state_->start.steps; }
const LossScale& Trainer::loss_scale() const { return state_->loss_scale; }
const GemmChoice& Trainer::gemm() const { return state_->gemm.choice(); }

Metrics Trainer::evaluate() {
  require(state_->task.evaluation() != nullptr, "trainer: the task has no evaluation samples");
  return state_->evaluate(0).metrics;
}

RunResult Trainer::run(const std::vector<Reporter*>& reporters, const std::string& description) {
  const SignalGuard signals;  // the exports at the end are not to be cut short either
  state_->checkpoints.prepare(description);
  const RunProgress& start = state_->start;
  RunResult result;
  result.steps = start.steps;
  result.training_seconds = result.earlier_seconds = start.training_seconds;
  AgreedReports reports(state_->ranks.world, reporters);
  reports.tell([&](Reporter& reporter) {
    reporter.start(
        {.steps = state_->steps, .first_step = start.steps, .steps_per_epoch = state_->task.steps_per_epoch()});
  });
  if (state_->config.evaluate_on_start && start.steps == 0) {
    const EvaluationReport before = state_->evaluate(0);
    state_->keep_answers(0);
    reports.tell([&](Reporter& reporter) { reporter.evaluation(before); });
  }
  state_->train(reports, signals, result);
  result.best = state_->best.metrics();
  if (!state_->config.output.empty()) {
    state_->export_model("last");
    if (state_->task.evaluation() == nullptr) state_->export_model("best");
  }
  reports.tell([](Reporter& reporter) { reporter.finish(); });
  reports.agree(0);
  return result;
}

void Trainer::read_row(const std::string& name, std::span<float> values) const {
  const ParameterTable& table = state_->store.table();
  const auto states = table.state_rows();
  const auto state = std::ranges::find(states, name, &ParameterRow::name);
  const std::size_t size = state != states.end() ? state->size : table.row(table.find(name)).size;
  require(values.size() == size, fmt::format("row {}: {} values for {}", name, values.size(), size));
  if (state != states.end())
    return read_state(state_->store, static_cast<std::size_t>(state - states.begin()), 0, values);
  state_->mode->read_row(table.find(name), 0, values);
}

}  // namespace mylos::train
