#include "app/runs/recorded_training.hpp"

#include "app/bench/calibration.hpp"
#include "app/options/train_options.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/trace.hpp"
#include "parallel/communicator/agreement.hpp"
#include "train/engine/evaluation_files.hpp"
#include "train/monitor/gpu_monitor.hpp"
#include "train/monitor/metrics_file.hpp"
#include "train/monitor/node_table.hpp"
#include "train/monitor/progress.hpp"
#include "train/monitor/tensorboard.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <iostream>
#include <optional>

namespace mylos::app {
namespace {

/// Writes the run's records to files, on the first rank.
struct Writers {
  Writers(const std::filesystem::path& directory, const nlohmann::ordered_json& run)
      : metrics(directory / "metrics.jsonl", seconds_since_1970, log_line),
        tensorboard(directory, train::hyperparameters_of(run), log_line) {}

  /// Returns a line for each kind of record that could not be written so far.
  std::vector<std::string> missing() {
    std::vector<std::string> lines = {metrics.missing(), tensorboard.missing()};
    std::erase(lines, "");
    return lines;
  }

  train::MetricsFile metrics;
  train::TensorBoard tensorboard;
};

/// Passes the rank's current step to the launch, which reports it if a rank does not respond.
class StepNotes final : public train::Reporter {
 public:
  explicit StepNotes(parallel::Launch& launch) : launch_(launch) {}
  void start(const train::RunStart& run) override { launch_.note_step(run.first_step + 1); }
  void launch(std::size_t step) override { launch_.note_step(step); }

 private:
  parallel::Launch& launch_;
};

train::ProgressView progress_view(const TrainRank& rank, const train::TrainConfig& config, const nn::Model& model) {
  train::ProgressView view = train::stderr_view();
  view.terminal = view.terminal && !rank.verbose;
  view.speaker = rank.speaker();
  if (config.gemm.tf32) return view;
  const Calibration here{.device = device_name(),
                         .threads = rank.launch.threads(),
                         .precision = config.precision,
                         .model = model_size(model)};
  view.ceiling = static_cast<double>(rank.ranks.size()) * measured_products(here, saved_calibrations());
  return view;
}

/// Logs what cannot be monitored. Collective.
void report_unwatched(const TrainRank& rank, const std::filesystem::path& gpu_log, const train::GpuMonitor& monitor) {
  const std::vector<std::string> obstacles = parallel::gather(rank.ranks, monitor.obstacles());
  if (!rank.is_first()) return;
  for (const std::string& line : train::unwatched_lines(obstacles)) log_line(line);
  if (!gpu_log.empty() && rank.launch.placement().device.empty()) {
    log_line(fmt::format("--gpu-log {}: not written, because this run computes on no GPU", gpu_log.string()));
  }
}

}  // namespace

RecordedTraining train_and_record(const TrainRank& rank, const Arguments& arguments, PreparedRun& run,
                                  const nlohmann::ordered_json& description) {
  const train::TrainConfig& config = arguments.run.engine;
  std::optional<train::Progress> progress;
  std::optional<Writers> written;
  StepNotes notes(rank.launch);
  train::GpuMonitor monitor(config.output, rank.launch.placements(), rank.ranks.rank(),
                            {.interval = train::gpu_sample_interval(rank.launch.nodes()),
                             .log = [](const std::string& line) { log_line(line); },
                             .gpu_log = arguments.train->gpu_log});
  report_unwatched(rank, arguments.train->gpu_log, monitor);
  RecordedTraining training;
  std::vector<train::Reporter*> reporters = {&notes, &monitor, &training.profile};
  if (rank.logs()) {
    reporters.push_back(&progress.emplace(std::cerr, progress_view(rank, config, run.task->model())));
  }
  parallel::on_first_rank(rank.ranks, [&] {
    const std::size_t first_step = run.trainer.first_step();
    const bool evaluation_due = run.trainer.evaluation_due();
    train::cut_metrics(config.output / "metrics.jsonl", first_step, evaluation_due);
    train::cut_evaluations(config.output, first_step, evaluation_due);
    written.emplace(config.output, description);
    reporters.insert(reporters.end(), {&written->metrics, &written->tensorboard});
  });
  constexpr std::size_t most_events = 20'000;
  if (!arguments.train->trace.empty()) Trace::start(most_events);
  training.result = run.trainer.run(reporters, description.dump());
  parallel::on_first_rank(rank.ranks, [&] {
    training.result.joules = written->tensorboard.close(training.result.signal == 0);
    const train::GpuFollower& followed = written->tensorboard.followed();
    training.nodes = train::closing_table(followed.nodes(), followed.gpus());
    training.unwritten = written->missing();
  });
  return training;
}

}  // namespace mylos::app
