#include "app/batch/batch_runs.hpp"
#include "app/options/plan_options.hpp"
#include "app/plan/plan_target.hpp"
#include "core/base/usage_error.hpp"
#include "train/planning/run_plan.hpp"

#include <memory>
#include <stdexcept>

namespace mylos::app {
namespace {

/// Returns the row of a setting. With the first row of its kind, also appends the largest micro-batch to `largest`.
BatchRow plan_row(const train::Workload& workload, const train::TrainConfig& config, const train::PlanTarget& target,
                  const BatchSetting& setting, bool is_first, std::vector<LargestBatch>& largest) {
  BatchRow row{.setting = setting};
  try {
    const train::StrategyPlan plan = train::plan_run(workload, config, target);
    row.micro_batches = plan.memory.strategy.micro_batches;
    row.fits = plan.fits;
    row.planned = plan.memory.peak();
    if (is_first) largest.push_back({setting.strategy, setting.recompute, plan.largest});
    if (!plan.fits) return row;
    row.seconds = plan.step.total();
    row.rate = workload.samples.work().count(plan.tokens) / plan.step.total();
  } catch (const std::runtime_error& error) {
    row.failure = error.what();
  }
  return row;
}

}  // namespace

BatchTable planned_batches(const Arguments& configured) {
  if (configured.plan->gpu.empty()) throw UsageError("bench batch --plan needs --gpu; see mylos bench --help");
  Arguments arguments = configured;
  const tasks::PlannedRun run = planned_run(configured);
  arguments.model = run.model;
  arguments.run = run.config;
  const train::PlanTarget target = make_target(arguments, *run.network);
  const std::shared_ptr<const train::SampleStream> samples = tasks::planned_samples(run);
  const train::Workload workload(*run.network, *samples);
  const std::size_t ranks = target.ranks.ranks;
  const std::vector<std::size_t> tried =
      tried_micro_batches(run.config.task.batch, ranks, configured.task->micro_batch_step(run.config));
  BatchTable table{.model = run.name,
                   .machine = target.machine.name,
                   .rate = target.rate.origin,
                   .work = run.work.name,
                   .samples = run.work.batch_units(),
                   .precision = std::string(to_string(run.config.engine.precision)),
                   .batch = run.config.task.batch,
                   .part = tried.back(),
                   .ranks = ranks,
                   .nodes = target.ranks.nodes,
                   .available = train::room_of(target, parallel::StrategyKind::replicated) + target.program};
  table.rows = make_rows(tried_strategies(arguments, ranks), tried_recomputations(arguments, *run.network), tried,
                         [&](const BatchSetting& setting) {
                           return plan_row(workload, with_setting(arguments, setting).run.engine, target, setting,
                                           setting.micro_batch == tried.front(), table.largest);
                         });
  if (const BatchRow* const fastest = fastest_row(table.rows); fastest != nullptr) {
    table.line = launched_line(arguments, run.data_options, row_options(arguments, fastest->setting));
  }
  return table;
}

}  // namespace mylos::app
