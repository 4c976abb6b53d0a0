#include "train/engine/loop/run_setup.hpp"

#include "core/base/setting_error.hpp"
#include "parallel/checkpoint/checkpoint_writers.hpp"
#include "parallel/communicator/agreement.hpp"
#include "train/engine/memory/run_bounds.hpp"
#include "train/engine/models/model_export.hpp"
#include "train/engine/selection/gemm_selection.hpp"
#include "train/engine/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
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
      fmt::format("ranks have from {} to {} threads; set the same OMP_NUM_THREADS for all", fewest, most));
}

/// Connects the devices of the groups of a given mode before memory is planned, because a library of the device takes
/// memory for each connection. A mode that the plan chooses has no groups but that of all ranks, which are connected.
std::unique_ptr<parallel::Mesh> connect_groups(const Ranks& ranks, const ExecutionSpace& space,
                                               const TrainConfig& config) {
  const std::optional<parallel::StrategyKind> strategy = config.parallel.strategy;
  if (!strategy) return nullptr;
  const std::size_t shards =
      made_on_every_rank(ranks.world, [&] { return lay_out(config, *strategy, count_ranks(ranks.placements)).shards; });
  auto groups = std::make_unique<parallel::Mesh>(ranks.world, shards);
  groups->connect(space);
  return groups;
}

MemoryPlan make_plan(const Ranks& ranks, const ExecutionSpace& space, const TrainConfig& config, const Task& task,
                     std::size_t steps) {
  const std::size_t available = available_on_every_rank(ranks);
  const RankCounts counts = count_with_threads(ranks, static_cast<std::size_t>(space.concurrency()));
  std::vector<std::int64_t> threads;  // of all ranks
  if (config.parallel.deterministic) threads = parallel::gather(ranks.world, std::int64_t{space.concurrency()});
  return made_on_every_rank(ranks.world, [&] {
    if (config.parallel.deterministic) check_threads(threads);
    return plan_memory(task, config, steps, available, counts);
  });
}

/// Returns the providers of matrix products, chosen by the first rank and proven by each, and records their workspace
/// and the memory that choosing them left resident in `plan`.
Gemm ready_gemm(const Ranks& ranks, const ExecutionSpace& space, const TrainConfig& config, const Task& task,
                MemoryPlan& plan) {
  const auto products = [&] { return products_of_run(task.model(), plan.largest, Workload(task).evaluation); };
  GemmConfig wanted = config.gemm;
  wanted.is_timed = wanted.is_timed && !config.parallel.deterministic;
  const GemmChoice chosen = choose_gemm(ranks.world, space, wanted, products);
  Gemm gemm = made_on_every_rank(ranks.world, [&] { return Gemm(chosen); });
  parallel::on_every_rank(ranks.world, [&] { note_products(plan, space, gemm, task); });
  return gemm;
}

ParameterStore make_store(const TrainConfig& config, const Task& task, const RankLayout& layout) {
  return {task.model().table(), config.precision, ParameterStore::Purpose::training,
          parallel::store_layout(layout.strategy, layout.shards)};
}

/// Needs the members of `run` before `step`.
std::unique_ptr<TrainingStep> make_step(RunSetup& run) {
  const StepContext context{run.task, run.store, *run.strategy,   *run.optimizer,
                            run.gemm, run.arena, run.ranks.world, run.config.recompute};
  const StepSettings settings{.steps = run.steps,
                              .largest_batch = largest_global_batch(run.task, run.steps),
                              .micro_batch = run.plan.largest,
                              .limit = run.plan.limit,
                              .split = run.plan.layout.split,
                              .clip = run.config.clip,
                              .seed = run.config.seed};
  return std::make_unique<TrainingStep>(context, settings);
}

/// Needs the members of `run` before `predictor`.
std::unique_ptr<ModelPredictor> make_predictor(RunSetup& run) {
  return std::make_unique<ModelPredictor>(run.ranks.world, run.space, run.task.model(), run.store,
                                          run.strategy->hooks(), run.gemm, run.arena, Workload(run.task).evaluation);
}

/// Makes what kernels keep for the batches of the first epoch, so that no step waits for it.
void prepare_batches(const RunSetup& run) {
  const auto batches = [&run] {
    const std::size_t steps = std::min(run.steps, run.task.steps_per_epoch());
    return distinct_micro_batches(run.task, steps, run.plan.limit, run.plan.layout.split, run.ranks.world.rank());
  };
  run.task.model().prepare(run.space, batches, ParameterStore::Purpose::training);
}

}  // namespace

/// Makes the members in the order of their declaration. Each is made on all ranks before the next one, so that an error
/// of one rank is thrown on all.
RunSetup::RunSetup(const TrainConfig& configuration, Task& trained, const Ranks& given)
    : config(configuration),
      task(trained),
      ranks(given),
      steps(total_steps(config, task)),
      connected(connect_groups(ranks, space, config)),
      plan(make_plan(ranks, space, config, task, steps)),
      schedule(learning_rate_schedule(config, steps)),
      gemm(ready_gemm(ranks, space, config, task, plan)),
      mesh(ranks.world, plan.layout.shards),
      store(made_on_every_rank(ranks.world, [this] { return make_store(config, task, plan.layout); })),
      strategy(made_on_every_rank(ranks.world,
                                  [this] { return parallel::make_sharding_strategy(plan.strategy, mesh, store); })),
      optimizer(made_on_every_rank(
          ranks.world, [this] { return nn::make_optimizer(config.optimizer, store.table(), strategy->slices()); })),
      arena(made_on_every_rank(ranks.world, [this] { return Arena("mylos::activations", plan.activations); })),
      step(made_on_every_rank(ranks.world, [this] { return make_step(*this); })),
      predictor(made_on_every_rank(ranks.world, [this] { return make_predictor(*this); })),
      writer_of(parallel::choose_writers(ranks.placements, config.checkpoints.writers)) {
  parallel::on_every_rank(ranks.world, [this] { prepare_batches(*this); });
  ranks.world.set_bucket(config.parallel.bucket);
  if (config.parallel.deterministic) ranks.world.set_order(parallel::SumOrder::ranks);
}

void RunSetup::export_model(const std::filesystem::path& name) const {
  train::export_model(ranks.world, task, store, *strategy, config.output / name, writer_of,
                      [this] { config.check_output(); });
}

}  // namespace mylos::train
