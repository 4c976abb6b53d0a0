#include "train/engine/trainer.hpp"

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/signals.hpp"
#include "core/kernels/scratch.hpp"
#include "parallel/checkpoint/checkpoint_writers.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"
#include "train/engine/agreed_reports.hpp"
#include "train/engine/gemm_selection.hpp"
#include "train/engine/initial_parameters.hpp"
#include "train/engine/memory.hpp"
#include "train/engine/model_export.hpp"
#include "train/engine/rank_memory.hpp"
#include "train/engine/run_bounds.hpp"
#include "train/engine/run_parts.hpp"
#include "train/engine/training_loop.hpp"
#include "train/engine/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace mylos::train {
namespace {

/// Returns the result of `make` unless it throws on a rank; then all ranks throw that error. `make` is not collective.
template <class Make>
auto made_on_every_rank(parallel::Communicator& ranks, const Make& make) {
  std::optional<decltype(make())> made;
  parallel::on_every_rank(ranks, [&] { made.emplace(make()); });
  return std::move(*made);
}

/// Kernels sum in the order of their threads, so all ranks need the same number of threads.
void check_threads(std::span<const std::int64_t> threads) {
  const auto [fewest, most] = std::ranges::minmax(threads);
  if (fewest == most) return;
  throw SettingError(
      "deterministic",
      fmt::format("ranks have from {} to {} threads; give all as many with OMP_NUM_THREADS", fewest, most));
}

MemoryPlan make_plan(const Ranks& ranks, const ExecutionSpace& space, const TrainConfig& config, const Task& task,
                     std::size_t steps) {
  const std::size_t available = available_on_every_rank(ranks);
  const std::vector<std::int64_t> threads = parallel::gather(ranks.world, std::int64_t{space.concurrency()});
  RankCounts counts = count_ranks(ranks.placements);
  counts.threads = static_cast<std::size_t>(*std::ranges::max_element(threads));
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
    return config.gemm.recorded.value_or(GemmChoice{default_gemm_provider(), {}});  // not chosen by timing
  }
  return select_gemm(space, config.gemm, products_of_run(task.model(), plan.largest, Workload(task).evaluation));
}

/// Returns the providers of matrix products, chosen by the first rank, and records their workspace and the memory that
/// choosing them left resident in `plan`.
Gemm ready_gemm(const Ranks& ranks, const ExecutionSpace& space, const TrainConfig& config, const Task& task,
                MemoryPlan& plan) {
  const GemmChoice chosen =
      parallel::on_first_rank(ranks.world, [&] { return choose_gemm(space, config, task, plan); });
  Gemm gemm = made_on_every_rank(ranks.world, [&] { return Gemm(chosen); });
  parallel::on_every_rank(ranks.world, [&] { note_products(plan, space, gemm, task); });
  return gemm;
}

std::span<const MetricKind> kinds_of(const Task& task) {
  const Evaluation* const evaluation = task.evaluation();
  return evaluation == nullptr ? std::span<const MetricKind>() : evaluation->kinds();
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
        mode(made_on_every_rank(ranks.world,
                                [this] { return parallel::make_sharding_strategy(plan.mode, mesh, store); })),
        optimizer(made_on_every_rank(
            ranks.world, [&] { return make_optimizer(configuration.optimizer, store.table(), mode->slices()); })),
        arena(made_on_every_rank(ranks.world, [this] { return Arena("mylos::activations", plan.activations); })),
        step(made_on_every_rank(ranks.world, [this] { return make_step(); })),
        predictor(made_on_every_rank(ranks.world, [this] { return make_predictor(); })),
        checkpoints({ranks.world, store, *mode, *optimizer,
                     parallel::choose_writers(ranks.placements, configuration.checkpoints.writers)},
                    config, {.steps = steps, .steps_per_epoch = trained.steps_per_epoch()}),
        best(configuration.best_by, configuration.patience, kinds_of(trained)) {
    ranks.world.set_bucket(config.parallel.bucket);
    if (config.parallel.deterministic) ranks.world.set_order(parallel::SumOrder::ranks);
    begin();
    sent.since_last();
    mode->sync_parameters(space);
  }
  State(const TrainConfig& configuration, Task& trained, std::unique_ptr<parallel::Communicator> self)
      : State(configuration, trained, Ranks{*self, {parallel::RankPlacement{}}}) {
    own = std::move(self);
  }

  ParameterStore make_store() const {
    return {task.model().table(), config.precision, ParameterStore::Purpose::training,
            parallel::store_layout(plan.layout.mode, plan.layout.shards)};
  }
  std::unique_ptr<TrainingStep> make_step() {
    const StepContext context{task, store, *mode, *optimizer, gemm, arena, ranks.world, config.recompute};
    const StepSettings settings{.steps = steps,
                                .largest_batch = largest_global_batch(task, steps),
                                .micro_batch = plan.largest,
                                .limit = plan.limit,
                                .split = plan.layout.split,
                                .clip = config.clip,
                                .seed = config.seed};
    return std::make_unique<TrainingStep>(context, settings);
  }
  std::unique_ptr<ModelPredictor> make_predictor() {
    return std::make_unique<ModelPredictor>(ranks.world, space, task.model(), store, mode->hooks(), gemm, arena,
                                            Workload(task).evaluation);
  }
  RunParts parts() {
    return {config, task,       ranks.world, space, store,    *mode, *optimizer,
            *step,  *predictor, checkpoints, best,  schedule, sent,  steps};
  }
  void export_model(const char* name) {
    train::export_model(ranks.world, task, store, *mode, config.output / name, checkpoints.writer_of());
  }
  /// Initialises the parameters from the model, or from the checkpoint that the run resumes.
  void begin();
  void resume();

  std::unique_ptr<parallel::Communicator> own;  ///< set if the trainer was given no ranks
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
  std::unique_ptr<parallel::ShardingStrategy> mode;
  std::unique_ptr<nn::Optimizer> optimizer;
  Arena arena;
  std::unique_ptr<TrainingStep> step;
  std::unique_ptr<ModelPredictor> predictor;
  RunCheckpoints checkpoints;
  BestModel best;
  RunProgress start;     ///< starting point of this start
  RunProgress progress;  ///< current state
  SentBytes sent;        ///< counts across steps, because sends started by an update continue after it
};

void Trainer::State::begin() {
  std::vector<FilledPiece> filled;
  parallel::on_every_rank(ranks.world, [&] {
    const parallel::FileWork loading;
    filled = fill_parameters(task, config.seed, store, *mode);
    reserve_scratch(space, plan.scratch);
  });
  pass_on(filled, *mode);
  resume();
}

void Trainer::State::resume() {
  start.loss_scale = first_loss_scale(config.precision, config.initial_loss_scale);
  start.evaluation_due = config.evaluate_on_start;
  if (!config.checkpoints.resume.empty()) start = checkpoints.resume(best);
  start.evaluation_due = start.evaluation_due && task.evaluation() != nullptr;
  progress = start;
}

Trainer::Trainer(const TrainConfig& config, Task& task, const Ranks& ranks)
    : state_(std::make_unique<State>(config, task, ranks)) {}
Trainer::Trainer(const TrainConfig& config, Task& task)
    : state_(std::make_unique<State>(config, task, parallel::make_self_communicator())) {}
Trainer::~Trainer() = default;

const MemoryPlan& Trainer::plan() const { return state_->plan; }
std::size_t Trainer::steps() const { return state_->steps; }
std::size_t Trainer::first_step() const { return state_->start.steps; }
bool Trainer::evaluation_due() const { return state_->start.evaluation_due; }
const LossScale& Trainer::loss_scale() const { return state_->progress.loss_scale; }
std::size_t Trainer::checkpoint_writers() const { return state_->checkpoints.writers(); }
const GemmChoice& Trainer::gemm() const { return state_->gemm.choice(); }

Metrics Trainer::evaluate() {
  require(state_->task.evaluation() != nullptr, "trainer: the task has no evaluation samples");
  Metrics metrics = state_->predictor->evaluate(*state_->task.evaluation());
  state_->sent.since_last();
  return metrics;
}

RunResult Trainer::run(const std::vector<Reporter*>& reporters, const std::string& description) {
  const SignalGuard signals;  // also protects the exports at the end
  state_->checkpoints.prepare(description);
  const RunProgress& start = state_->start;
  AgreedReports reports(state_->ranks.world, reporters);
  reports.tell([&](Reporter& reporter) {
    reporter.start({.steps = state_->steps,
                    .first_step = start.steps,
                    .steps_per_epoch = state_->task.steps_per_epoch(),
                    .evaluation_due = start.evaluation_due,
                    .work = state_->task.work()});
  });
  TrainingLoop loop(state_->parts(), state_->progress, reports, signals);
  const RunResult result = loop.run();
  const bool is_saved = result.signal != 0 && state_->checkpoints.enabled();
  if (!state_->config.output.empty() && !is_saved) {
    state_->export_model("last");
    if (state_->task.evaluation() == nullptr) state_->export_model("best");
  }
  reports.tell([](Reporter& reporter) { reporter.finish(); });
  reports.agree(0);
  if (!loop.unsaved().empty()) throw parallel::SharedError(loop.unsaved());
  return result;
}

void Trainer::read_tensor(const std::string& name, std::span<float> values) const {
  const ParameterTable& table = state_->store.table();
  const auto states = table.state_tensors();
  const auto state = std::ranges::find(states, name, &ParameterTensor::name);
  const std::size_t size = state != states.end() ? state->size : table.tensor(table.find(name)).size;
  require(values.size() == size, fmt::format("tensor {}: {} values for {}", name, values.size(), size));
  if (state != states.end())
    return read_state(state_->store, static_cast<std::size_t>(state - states.begin()), 0, values);
  state_->mode->read_tensor(table.find(name), 0, values);
}

}  // namespace mylos::train
