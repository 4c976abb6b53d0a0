#include "train/engine/loop/trainer.hpp"

#include "core/base/error.hpp"
#include "core/base/process/signals.hpp"
#include "core/kernels/scratch.hpp"
#include "parallel/checkpoint/checkpoint_writers.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/communicator.hpp"
#include "parallel/communicator/file_work.hpp"
#include "train/engine/data_notes.hpp"
#include "train/engine/loop/agreed_reports.hpp"
#include "train/engine/loop/run_setup.hpp"
#include "train/engine/loop/training_loop.hpp"
#include "train/engine/loop/training_scores.hpp"
#include "train/engine/models/initial_parameters.hpp"
#include "train/engine/models/model_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace mylos::train {
namespace {

/// Fills the master weights and the state tensors from the task. Returns the model whose adapters are trained.
AdaptedModel fill_model(RunSetup& setup) {
  const FileCopies headers = copy_weight_headers(setup.ranks.world, setup.task);
  FilledParameters filled;
  parallel::on_every_rank(setup.ranks.world, [&] {
    const parallel::FileWork loading;
    filled = fill_parameters(FileReader(headers), setup.task, setup.config.seed, setup.store, *setup.strategy);
    reserve_scratch(setup.space, setup.plan.scratch);
  });
  pass_on(filled, setup.store, *setup.strategy);
  AdaptedModel adapted{.directory = setup.task.adapted_model()};
  for (const std::int64_t sum :
       parallel::gather(setup.ranks.world, std::bit_cast<std::int64_t>(filled.adapted_checksum))) {
    adapted.checksum += std::bit_cast<std::uint64_t>(sum);
  }
  return adapted;
}

}  // namespace

RunState::RunState(const RunSetup& setup)
    : checkpoints({setup.ranks.world, setup.store, *setup.strategy, *setup.optimizer, setup.task, setup.writer_of},
                  setup.config, {.steps = setup.steps, .steps_per_epoch = setup.task.steps_per_epoch()}),
      best(setup.config.best, metric_kinds(setup.config, setup.task)),
      progress{.loss_scale = first_loss_scale(setup.config.precision, setup.config.initial_loss_scale),
               .evaluation_due = setup.config.evaluate_on_start} {}

Trainer::Trainer(const TrainConfig& config, Task& task, const Ranks& ranks)
    : setup_(std::make_unique<RunSetup>(config, task, ranks)), state_(std::make_unique<RunState>(*setup_)) {
  state_->checkpoints.set_adapted(fill_model(*setup_));
  RunProgress& progress = state_->progress;
  if (!setup_->config.checkpoints.resume.empty()) progress = state_->checkpoints.resume(state_->best);
  progress.evaluation_due = progress.evaluation_due && judges_models(config, task);
  first_step_ = progress.steps;
  evaluation_due_ = progress.evaluation_due;
  state_->sent.since_last();
  setup_->strategy->sync_parameters(setup_->space, ChangedUnits::all);
}
Trainer::Trainer(const TrainConfig& config, Task& task, std::unique_ptr<parallel::Communicator> own)
    : Trainer(config, task, Ranks{*own, {parallel::RankPlacement{}}}) {
  own_ = std::move(own);
}
Trainer::Trainer(const TrainConfig& config, Task& task) : Trainer(config, task, parallel::make_self_communicator()) {}
Trainer::~Trainer() = default;

const MemoryPlan& Trainer::plan() const { return setup_->plan; }
std::size_t Trainer::steps() const { return setup_->steps; }
const LossScale& Trainer::loss_scale() const { return state_->progress.loss_scale; }
std::size_t Trainer::checkpoint_writers() const { return parallel::count_writers(setup_->writer_of); }
const GemmChoice& Trainer::gemm() const { return setup_->gemm.choice(); }

Metrics Trainer::evaluate() {
  Evaluation* const evaluation = setup_->task.evaluation();
  require(evaluation != nullptr, "trainer: the task has no evaluation samples");
  Metrics metrics = setup_->predictor->evaluate(*evaluation);
  state_->sent.since_last();
  return metrics;
}

RunResult Trainer::run(const std::vector<Reporter*>& reporters, const std::string& description) {
  const SignalGuard signals;  // also protects the exports at the end
  const RunSetup& setup = *setup_;
  RunState& state = *state_;
  state.checkpoints.prepare(description);
  AgreedReports reports(setup.ranks.world, reporters);
  reports.tell([&](Reporter& reporter) {
    reporter.start({.steps = setup.steps,
                    .first_step = first_step(),
                    .steps_per_epoch = setup.task.steps_per_epoch(),
                    .evaluation_due = evaluation_due(),
                    .work = setup.task.work()});
  });
  TrainingLoop loop(setup, state, reports, signals);
  const RunResult result = loop.run();
  const bool is_saved = result.signal != 0 && state.checkpoints.enabled();
  if (!setup.config.output.empty() && !is_saved) {
    loop.save_before_failing([&] {
      setup.export_model("last");
      if (!judges_models(setup.config, setup.task)) setup.export_model("best");
    });
  }
  collect_notes(setup.ranks.world, setup.task);
  reports.tell([](Reporter& reporter) { reporter.finish(); });
  reports.agree({});
  if (!loop.unsaved().empty()) throw parallel::SharedError(loop.unsaved());
  return result;
}

void Trainer::read_tensor(const std::string& name, std::span<float> values) const {
  const RunSetup& setup = *setup_;
  const ParameterTable& table = setup.store.table();
  const auto states = table.state_tensors();
  const auto state = std::ranges::find(states, name, &ParameterTensor::name);
  const std::size_t size = state != states.end() ? state->size : table.tensor(table.find(name)).size;
  require(values.size() == size, fmt::format("tensor {}: {} values for {}", name, values.size(), size));
  if (state != states.end())
    return read_state(setup.store, static_cast<std::size_t>(state - states.begin()), 0, values);
  setup.strategy->read_tensor(table.find(name), 0, values);
}

}  // namespace mylos::train
