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

/// Returns the state before step 1.
RunState initial_state(const RunSetup& setup) {
  const TrainConfig& config = setup.config;
  return {.checkpoints = RunCheckpoints(
              {setup.ranks.world, setup.store, *setup.strategy, *setup.optimizer, setup.task, setup.writer_of}, config,
              {.steps = setup.steps, .steps_per_epoch = setup.task.steps_per_epoch()}),
          .best = BestModel(config.best, metric_kinds(config, setup.task)),
          .progress = {.loss_scale = first_loss_scale(config.precision, config.initial_loss_scale),
                       .evaluation_due = config.evaluate_on_start},
          .sent = {}};
}

/// Fills the master weights and the state tensors from the task. Returns the model whose adapters are trained.
AdaptedModel fill_model(RunSetup& setup) {
  const FileCopies headers = copy_weight_headers(setup.ranks.world, setup.task);
  FilledParameters filled;
  parallel::on_every_rank(setup.ranks.world, [&] {
    const parallel::FileWork loading;
    filled = fill_parameters(FileReader(headers), setup.task, setup.config.seed, setup.store, *setup.strategy);
    reserve_scratch(setup.space, setup.plan.scratch);
  });
  pass_on(filled.pieces, setup.store, *setup.strategy);
  AdaptedModel adapted{.directory = setup.task.adapted_model()};
  for (const std::int64_t sum :
       parallel::gather(setup.ranks.world, std::bit_cast<std::int64_t>(filled.adapted_checksum))) {
    adapted.checksum += std::bit_cast<std::uint64_t>(sum);
  }
  return adapted;
}

}  // namespace

struct Trainer::Run {
  Run(const TrainConfig& config, Task& task, const Ranks& ranks)
      : setup(config, task, ranks), state(initial_state(setup)) {
    state.checkpoints.set_adapted(fill_model(setup));
    RunProgress& progress = state.progress;
    if (!setup.config.checkpoints.resume.empty()) progress = state.checkpoints.resume(state.best);
    progress.evaluation_due = progress.evaluation_due && judges_models(config, task);
    start = progress;
    state.sent.since_last();
    setup.strategy->sync_parameters(setup.space, ChangedUnits::all);
  }

  RunSetup setup;
  RunState state;
  RunProgress start;  ///< the progress when this start of the run began
};

Trainer::Trainer(const TrainConfig& config, Task& task, const Ranks& ranks)
    : run_(std::make_unique<Run>(config, task, ranks)) {}
Trainer::Trainer(const TrainConfig& config, Task& task)
    : own_(parallel::make_self_communicator()),
      run_(std::make_unique<Run>(config, task, Ranks{*own_, {parallel::RankPlacement{}}})) {}
Trainer::~Trainer() = default;

const MemoryPlan& Trainer::plan() const { return run_->setup.plan; }
std::size_t Trainer::steps() const { return run_->setup.steps; }
std::size_t Trainer::first_step() const { return run_->start.steps; }
bool Trainer::evaluation_due() const { return run_->start.evaluation_due; }
const LossScale& Trainer::loss_scale() const { return run_->state.progress.loss_scale; }
std::size_t Trainer::checkpoint_writers() const { return parallel::count_writers(run_->setup.writer_of); }
const GemmChoice& Trainer::gemm() const { return run_->setup.gemm.choice(); }

Metrics Trainer::evaluate() {
  Evaluation* const evaluation = run_->setup.task.evaluation();
  require(evaluation != nullptr, "trainer: the task has no evaluation samples");
  Metrics metrics = run_->setup.predictor->evaluate(*evaluation);
  run_->state.sent.since_last();
  return metrics;
}

RunResult Trainer::run(const std::vector<Reporter*>& reporters, const std::string& description) {
  const SignalGuard signals;  // also protects the exports at the end
  const RunSetup& setup = run_->setup;
  RunState& state = run_->state;
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
  const RunSetup& setup = run_->setup;
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
