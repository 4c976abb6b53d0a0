#include "app/batch/batch_output.hpp"
#include "app/batch/batch_runs.hpp"
#include "app/bench/bench.hpp"
#include "app/bench/calibration.hpp"
#include "app/options/plan_options.hpp"
#include "app/plan/job_script.hpp"
#include "app/program/compute.hpp"
#include "app/program/model_argument.hpp"
#include "app/program/on_ranks.hpp"
#include "core/base/median.hpp"
#include "core/base/process/signals.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/device.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"
#include "tasks/interface/task.hpp"
#include "train/engine/loop/trainer.hpp"
#include "train/engine/memory/memory.hpp"
#include "train/engine/memory/rank_layout.hpp"
#include "train/engine/memory/run_bounds.hpp"
#include "train/planning/run_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <limits>
#include <memory>
#include <set>

namespace mylos::app {
namespace {

/// Records the steps of a row and ends its run after the last one that counts. The run is planned with the steps of a
/// whole run, so that it uses the same memory.
class RowReporter final : public train::Reporter {
 public:
  RowReporter(std::size_t steps, bool ends, bool is_peak) : steps_(steps), ends_(ends), is_peak_(is_peak) {}

  void step(const train::StepReport& report) override {
    if (report.step > steps_) return;  // it was launched before the run ended
    if (report.step == 1) loss = report.loss;
    used = std::max(used, is_peak_ ? train::peak_resident_memory() : train::resident_memory());
    if (report.step > bench_warm_ups) {
      seconds.push_back(report.seconds);
      rows += static_cast<double>(report.tokens);
    }
    last_loss = report.loss;
    // Ends the run like a job scheduler would. The run has no directory, so nothing is written.
    if (report.step == steps_ && ends_) SignalGuard::receive(SIGUSR1);
  }

  double loss = 0.0, last_loss = 0.0;
  std::size_t used = 0;
  std::vector<double> seconds;  ///< timed steps
  double rows = 0.0;            ///< rows (such as tokens) in all timed steps

 private:
  std::size_t steps_;
  bool ends_;
  bool is_peak_;
};

std::string machine_text() {
  if (!runs_on_host) return device_name();
  return fmt::format("{} of {} on each rank", count_of(default_threads(), "thread"), ExecutionSpace::name());
}

class BatchRunner {
 public:
  BatchRunner(const Arguments& configured, parallel::Launch& launch)
      : launch_(launch), world_(launch.world()), compute_(launch), arguments_(configured) {}

  BatchTable run();

 private:
  bool is_first() const { return world_.rank() == 0; }
  std::size_t steps() const { return bench_warm_ups + arguments_.repeats; }
  void load_task();
  void say(const std::string& line) const {
    if (is_first()) log_line(line);
  }
  std::size_t available() const;
  /// Returns the largest `bytes` of all ranks.
  std::size_t most_of_all(std::size_t bytes) const {
    return static_cast<std::size_t>(parallel::maximum(world_, static_cast<std::int64_t>(bytes)));
  }
  train::MemoryPlan plan_row(const train::TrainConfig& config, std::size_t free);
  BatchRow try_row(const BatchSetting& setting);
  void run_row(const train::TrainConfig& config, BatchRow& row);
  std::string line(const BatchSetting& setting) const;

  parallel::Launch& launch_;
  parallel::Communicator& world_;
  ComputeScope compute_;
  Arguments arguments_;
  std::set<std::string> said_;
  std::unique_ptr<tasks::Task> task_;
  std::vector<std::size_t> tried_;  ///< micro-batch sizes
  BatchTable table_;
};

void BatchRunner::load_task() {
  on_all_ranks_with_copies(world_, [this](const FileReader& files) {
    const parallel::FileWork loading;
    resolve_model_argument(files, arguments_, [this](const std::string& line) { say(line); });
    check_precision(arguments_.run.engine.precision, arguments_.run.engine.gemm.tf32);
    arguments_.run.task.train = arguments_.data;
  });
  const parallel::DeviceSums sums = train::device_sums(arguments_.run.engine);
  if (const std::string& remark = launch_.use_communicator("auto", sums).remark; !remark.empty()) say(remark);
  // Each row starts again, so notices that were already logged are not repeated.
  const Notice say_once = [this](const std::string& line) {
    if (said_.insert(line).second) say(line);
  };
  task_ = make_task(world_, *arguments_.task, arguments_.run, say_once).task;
}

/// Returns the bytes that every rank may use, taking --memory into account; the same on every rank.
std::size_t BatchRunner::available() const {
  constexpr double gib = 1u << 30;
  const std::size_t has = train::resident_memory();
  const std::size_t free = train::available_on_every_rank(train::ranks_of(launch_));
  if (!arguments_.plan->memory) return free;
  const auto bound = static_cast<std::size_t>(*arguments_.plan->memory * gib);
  const std::size_t bounded = std::min(free, bound - std::min(bound, has));
  return static_cast<std::size_t>(parallel::minimum(world_, static_cast<std::int64_t>(bounded)));
}

/// Plans the run of a row, whether it fits or not. Errors: on every rank, those of settings that the run cannot honour.
train::MemoryPlan BatchRunner::plan_row(const train::TrainConfig& config, std::size_t free) {
  constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
  const ExecutionSpace space;
  const train::RankCounts counts =
      train::count_with_threads(train::ranks_of(launch_), static_cast<std::size_t>(space.concurrency()));
  train::MemoryPlan plan;
  parallel::on_every_rank(world_, [&] { plan = train::plan_memory(*task_, config, config.steps, unlimited, counts); });
  plan.program = train::resident_memory();
  // The newest row of a kind is the most accurate: the program grows as it runs, and a row that does not fit shows that
  // the largest micro-batch is smaller.
  if (config.micro_batch != tried_.front()) table_.largest.pop_back();
  table_.largest.push_back({plan.layout.strategy, config.recompute,
                            train::largest_micro_batch_that_fits(*task_, plan, counts, config.recompute, free)});
  return plan;
}

BatchRow BatchRunner::try_row(const BatchSetting& setting) {
  train::TrainConfig config = with_setting(arguments_, setting).run.engine;
  config.steps = std::max(train::total_steps(config, *task_), steps());
  BatchRow row{.setting = setting};
  train::release_unused_memory();
  try {
    const std::size_t free = available();
    const train::MemoryPlan plan = plan_row(config, free);
    row.micro_batches = plan.strategy.micro_batches;
    row.planned = most_of_all(plan.peak());
    const bool fits_here = plan.total() + plan.output <= free;
    row.fits = parallel::maximum(world_, fits_here ? 0 : 1) == 0;
    table_.available = most_of_all(plan.program) + free;
    if (row.fits) run_row(config, row);
  } catch (const parallel::SharedError& error) {
    row.failure = error.what();
  } catch (const std::exception& error) {
    if (world_.size() > 1) throw;  // other ranks do not have this error
    row.failure = error.what();
  }
  const std::string found = !row.failure.empty() ? row.failure
                            : row.fits           ? fmt::format("{:.4g} ms per step", 1e3 * row.seconds.value_or(0.0))
                                                 : "does not fit, needs " + needed_text(table_, row);
  say(fmt::format("{}: {}", setting_text(setting), found));
  return row;
}

/// Runs a row; its peak memory is counted from here on.
void BatchRunner::run_row(const train::TrainConfig& config, BatchRow& row) {
  table_.is_peak = parallel::maximum(world_, train::reset_peak_resident_memory() ? 0 : 1) == 0;
  train::Trainer trainer(config, *task_, train::ranks_of(launch_));
  row.planned = most_of_all(trainer.plan().peak());
  RowReporter reporter(steps(), is_first() && trainer.steps() > steps(), table_.is_peak);
  const train::RunResult result = trainer.run({&reporter});
  if (result.signal != 0 && (result.signal != SIGUSR1 || result.steps < steps()))
    throw InterruptedBatches{result.signal};
  row.used = most_of_all(reporter.used);
  row.loss = reporter.loss;
  row.seconds = median(reporter.seconds);
  row.last_loss = reporter.last_loss;
  row.rate = task_->work().count(reporter.rows / static_cast<double>(reporter.seconds.size())) / *row.seconds;
}

std::string BatchRunner::line(const BatchSetting& setting) const {
  std::string text = world_.size() > 1 ? fmt::format("mpirun -n {} ", world_.size()) : "";
  text += "mylos train --train " + shell_word(data_path(arguments_)) + " --output run";
  for (const TrainOption& option : row_options(arguments_, setting)) text += typed_words(option);
  return text;
}

BatchTable BatchRunner::run() {
  load_task();
  const train::WorkKind work = task_->work();
  const std::size_t batch = arguments_.run.task.batch;
  tried_ = tried_micro_batches(batch, world_.size(), arguments_.task->micro_batch_step(arguments_.run));
  table_ = {.model = arguments_.model,
            .machine = machine_text(),
            .rate = {},
            .work = work.name,
            .samples = work.batch_units(),
            .precision = std::string(to_string(arguments_.run.engine.precision)),
            .batch = batch,
            .part = tried_.back(),
            .ranks = world_.size(),
            .nodes = launch_.nodes()};
  const std::vector<BatchRow> rows =
      make_rows(tried_strategies(arguments_, world_.size()), tried_recomputations(arguments_, task_->model()), tried_,
                [this](const auto& setting) { return try_row(setting); });
  table_.rows = rows;
  if (const BatchRow* const fastest = fastest_row(table_.rows)) table_.line = line(fastest->setting);
  return table_;
}

}  // namespace

BatchTable measured_batches(const Arguments& arguments, parallel::Launch& launch) {
  return BatchRunner(arguments, launch).run();
}

}  // namespace mylos::app
