#include "train/trainer.hpp"

#include "core/error.hpp"
#include "parallel/parameter_mode.hpp"
#include "train/best_model.hpp"
#include "train/gemm_selection.hpp"
#include "train/initial_parameters.hpp"
#include "train/memory.hpp"
#include "train/model_predictor.hpp"
#include "train/row_pieces.hpp"
#include "train/signals.hpp"
#include "train/training_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace mylos::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::size_t total_steps(const TrainConfig& config, const Task& task) {
  if (config.steps > 0) return config.steps;
  return static_cast<std::size_t>(std::ceil(config.epochs * static_cast<double>(task.steps_per_epoch())));
}

std::unique_ptr<nn::Optimizer> make_optimizer(const OptimizerConfig& config, const ParameterTable& table,
                                              std::span<const ParameterSlice> slices) {
  if (config.kind == OptimizerKind::sgd) return nn::make_sgd(config.sgd, table, slices);
  return nn::make_adamw(config.adamw, table, slices);
}

/// The run's providers of products, and in `plan` what they take: what they copy, and what choosing them made resident.
Gemm ready_gemm(const ExecutionSpace& space, const TrainConfig& config, const Task& task, MemoryPlan& plan) {
  Gemm gemm(select_gemm(space, config.gemm, products_of_run(task.model(), plan.largest, task.evaluation_shape())));
  plan.workspace = gemm.workspace_bytes(largest_products(task, plan));
  note_resident(plan);
  return gemm;
}

}  // namespace

struct Trainer::State {
  State(const TrainConfig& configuration, Task& trained)
      : config(configuration),
        task(trained),
        steps(total_steps(configuration, trained)),
        plan(plan_memory(trained, configuration, steps, available_memory())),
        schedule(learning_rate_schedule(configuration, steps)),
        gemm(ready_gemm(space, configuration, trained, plan)),
        store(trained.model().table(), configuration.precision, ParameterStore::Purpose::training),
        mode(parallel::make_single_process_mode(store)),
        optimizer(make_optimizer(configuration.optimizer, store.table(), mode->slices())),
        arena("mylos::activations", plan.activations),
        step({trained, store, *mode, *optimizer, gemm, arena, configuration.recompute},
             largest_global_batch(trained, steps), plan.limit, configuration.clip, configuration.seed),
        predictor(space, trained.model(), store, mode->schedule(), gemm, arena, trained.evaluation_shape().samples) {
    load_initial_parameters(space, task, config.seed, store, *mode);
  }

  StepReport run_step(std::size_t index);
  EvaluationReport evaluate(std::size_t steps_done);
  void read_row(const std::string& name, std::size_t first, std::span<float> values) const;
  void export_model(const char* name) const;
  [[noreturn]] void stop_diverged(std::size_t index, const StepResult& result);
  bool weights_are_finite() const;
  bool due_for_evaluation(std::size_t steps_done) const;
  void train(const std::vector<Reporter*>& reporters, const SignalGuard& signals, BestModel& best, RunResult& result);

  TrainConfig config;
  Task& task;
  std::size_t steps;
  MemoryPlan plan;
  nn::LearningRateSchedule schedule;
  ExecutionSpace space;
  Gemm gemm;
  ParameterStore store;
  std::unique_ptr<parallel::ParameterMode> mode;
  std::unique_ptr<nn::Optimizer> optimizer;
  Arena arena;
  TrainingStep step;
  ModelPredictor predictor;
};

StepReport Trainer::State::run_step(std::size_t index) {
  const Clock::time_point begin = Clock::now();
  const double learning_rate = schedule.at(index);
  const StepResult result = step.run(space, index, learning_rate);
  space.fence("mylos::Trainer::step");
  if (!is_finite(result)) stop_diverged(index, result);
  return {.step = index + 1,
          .epoch = static_cast<double>(index + 1) / static_cast<double>(task.steps_per_epoch()),
          .loss = result.loss,
          .gradient_norm = result.gradient_norm,
          .learning_rate = learning_rate,
          .sequences = result.sequences,
          .tokens = result.tokens,
          .seconds = seconds_since(begin),
          .memory = peak_resident_memory()};
}

/// Keeps the weights of the last finite loss: where this step's loss is none, those before the update that spoilt them.
void Trainer::State::stop_diverged(std::size_t index, const StepResult& result) {
  std::string kept;
  if (!config.output.empty()) {
    const bool spoilt = index > 0 && !std::isfinite(result.loss);
    if (spoilt) {
      optimizer->revert(space, {.step = index - 1, .learning_rate = static_cast<float>(schedule.at(index - 1))});
      mode->publish_values(space);
    }
    if (weights_are_finite()) {
      export_model("last");
      kept = fmt::format("last/ holds the weights that step {} began with{}; ", spoilt ? index : index + 1,
                         spoilt ? ", to the rounding of its update" : "");
    }
  }
  fail(
      fmt::format("step {}: loss {}, gradient norm {}: the run stops; {}use a smaller --learning-rate or a longer "
                  "--warmup",
                  index + 1, std::abs(result.loss), std::abs(result.gradient_norm), kept));
}

bool Trainer::State::weights_are_finite() const {
  std::vector<float> values;
  for (std::size_t row = 0; row < store.table().rows().size(); ++row) {
    const std::size_t size = store.table().row(row).size;
    for (std::size_t first = 0; first < size; first += values.size()) {
      values.resize(std::min(piece_elements, size - first));
      mode->read_row(row, first, values);
      if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) return false;
    }
  }
  return true;
}

EvaluationReport Trainer::State::evaluate(std::size_t steps_done) {
  const Clock::time_point begin = Clock::now();
  Metrics metrics = task.evaluate(predictor);
  return {.step = steps_done, .seconds = seconds_since(begin), .metrics = std::move(metrics)};
}

void Trainer::State::read_row(const std::string& name, std::size_t first, std::span<float> values) const {
  const auto states = store.table().state_rows();
  const auto state = std::ranges::find(states, name, &ParameterRow::name);
  if (state == states.end()) return mode->read_row(store.table().find(name), first, values);
  const Kokkos::View<float*, HostSpace, Kokkos::MemoryUnmanaged> target(values.data(), values.size());
  const Vector<float> all = store.state(static_cast<std::size_t>(state - states.begin()));
  Kokkos::deep_copy(target, slice(all, first, first + values.size()));
}

void Trainer::State::export_model(const char* name) const {
  task.export_model(config.output / name, [this](const std::string& row, std::size_t first, std::span<float> values) {
    read_row(row, first, values);
  });
}

bool Trainer::State::due_for_evaluation(std::size_t steps_done) const {
  const std::size_t every = config.evaluate_every > 0 ? config.evaluate_every : task.steps_per_epoch();
  return task.evaluation_shape().samples > 0 && (steps_done % every == 0 || steps_done == steps);
}

void Trainer::State::train(const std::vector<Reporter*>& reporters, const SignalGuard& signals, BestModel& best,
                           RunResult& result) {
  result.signal = signals.received();
  while (result.steps < steps && !result.stopped_early && result.signal == 0) {
    const StepReport report = run_step(result.steps);
    result.training_seconds += report.seconds;
    ++result.steps;
    for (Reporter* reporter : reporters) reporter->step(report);
    if (due_for_evaluation(result.steps)) {
      EvaluationReport evaluation = evaluate(result.steps);
      evaluation.best = best.offer(evaluation.metrics);
      if (evaluation.best && !config.output.empty()) {
        export_model("best");
        task.write_results(config.output);
      }
      for (Reporter* reporter : reporters) reporter->evaluation(evaluation);
      result.stopped_early = best.out_of_patience();
    }
    result.signal = signals.received();
  }
}

Trainer::Trainer(const TrainConfig& config, Task& task) : state_(std::make_unique<State>(config, task)) {}
Trainer::~Trainer() = default;

const MemoryPlan& Trainer::plan() const { return state_->plan; }
std::size_t Trainer::steps() const { return state_->steps; }
const GemmChoice& Trainer::gemm() const { return state_->gemm.choice(); }

Metrics Trainer::evaluate() {
  require(state_->task.evaluation_shape().samples > 0, "trainer: the task has no evaluation samples");
  return state_->evaluate(0).metrics;
}

RunResult Trainer::run(const std::vector<Reporter*>& reporters) {
  const SignalGuard signals;  // the exports at the end are not to be cut short either
  RunResult result;
  BestModel best(state_->config.best_by, state_->config.patience);
  for (Reporter* reporter : reporters) {
    reporter->start({.steps = state_->steps, .first_step = 0, .steps_per_epoch = state_->task.steps_per_epoch()});
  }
  if (state_->config.evaluate_on_start) {
    const EvaluationReport before = state_->evaluate(0);
    for (Reporter* reporter : reporters) reporter->evaluation(before);
  }
  state_->train(reporters, signals, best, result);
  result.best = best.metrics();
  if (!state_->config.output.empty()) {
    state_->export_model("last");
    if (state_->task.evaluation_shape().samples == 0) state_->export_model("best");
  }
  for (Reporter* reporter : reporters) reporter->finish();
  return result;
}

void Trainer::read_row(const std::string& name, std::span<float> values) const {
  const ParameterTable& table = state_->store.table();
  const auto states = table.state_rows();
  const auto state = std::ranges::find(states, name, &ParameterRow::name);
  const std::size_t size = state != states.end() ? state->size : table.row(table.find(name)).size;
  require(values.size() == size, fmt::format("row {}: {} values for {}", name, values.size(), size));
  state_->read_row(name, 0, values);
}

}  // namespace mylos::train
