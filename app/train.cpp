#include "app/build_info.hpp"
#include "app/calibration.hpp"
#include "app/commands.hpp"
#include "app/compute.hpp"
#include "app/config_file.hpp"
#include "app/consistency.hpp"
#include "app/model_argument.hpp"
#include "app/on_ranks.hpp"
#include "app/resumption.hpp"
#include "app/run_description.hpp"
#include "app/run_output.hpp"
#include "app/standard_output.hpp"
#include "core/error.hpp"
#include "core/trace.hpp"
#include "data/files.hpp"
#include "parallel/agreement.hpp"
#include "parallel/checkpoint.hpp"
#include "parallel/consistency.hpp"
#include "parallel/file_work.hpp"
#include "train/evaluation_files.hpp"
#include "train/gpu_monitor.hpp"
#include "train/memory.hpp"
#include "train/metrics_file.hpp"
#include "train/progress.hpp"
#include "train/quantities.hpp"
#include "train/signals.hpp"
#include "train/tensorboard.hpp"
#include "train/walltime.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

/// mylos train: fine-tunes a model.
namespace mylos::app {
namespace {

using Clock = std::chrono::steady_clock;

/// Bytes that best/, last/ and the copy that replaces one of them take: parameters are written as float.
std::size_t output_bytes(const train::SquadTask& task) { return 3 * task.model().table().size() * sizeof(float); }

/// What writes down what a run reports, on the rank that does.
struct Writers {
  Writers(const std::filesystem::path& directory, const nlohmann::ordered_json& run)
      : metrics(directory / "metrics.jsonl"), tensorboard(directory, train::hyperparameters_of(run)) {}

  train::MetricsFile metrics;
  train::TensorBoard tensorboard;
};

/// Tells the launch which step a rank is in, for what it says of a rank that does not come.
class StepNotes final : public train::Reporter {
 public:
  explicit StepNotes(parallel::Launch& launch) : launch_(launch) {}
  void start(const train::RunStart& run) override { launch_.note_step(run.first_step + 1); }
  void step(const train::StepReport& report) override { launch_.note_step(report.step + 1); }

 private:
  parallel::Launch& launch_;
};

/// mylos train on one of the ranks. All of them call the same functions.
class TrainCommand {
 public:
  TrainCommand(parallel::Launch& launch, const Arguments& told, Clock::time_point begin)
      : launch_(launch), ranks_(launch.world()), compute_(launch), arguments_(told), begin_(begin) {}

  int run();

 private:
  bool is_first() const { return ranks_.rank() == 0; }
  bool speaks() const { return is_first() || arguments_.verbose; }
  std::string speaker() const { return arguments_.verbose ? fmt::format("rank {}: ", ranks_.rank()) : ""; }
  train::ProgressView progress_view() const;
  void tell_of_unwatched(const train::GpuMonitor& monitor);
  train::Notice notice() const {
    if (!speaks()) return [](const std::string&) {};
    return [speaker = speaker()](const std::string& line) { log_line(speaker + line); };
  }
  void watch_walltime();
  void write_trace();
  void load_task();
  std::vector<parallel::NamedValue> described_run() const;
  void say_banner(const train::Trainer& trainer) const;
  int say_what_would_be();
  int report_finished(const RunOutput& output) const;
  int run_in(RunOutput& output);
  void take_up(const std::filesystem::path& checkpoint);
  train::RunResult train_and_report(train::Trainer& trainer, const nlohmann::ordered_json& run);

  parallel::Launch& launch_;
  parallel::Communicator& ranks_;
  ComputeScope compute_;  ///< from the start, because what ranks agree on goes through their communicator
  Arguments arguments_;
  Clock::time_point begin_;
  std::optional<train::SquadTask> task_;
  std::size_t free_memory_ = 0;
};

int TrainCommand::run() {
  launch_.set_time_limit(std::chrono::duration<double>(arguments_.collective_timeout));
  on_all_ranks(ranks_, [this] {
    const parallel::FileWork looking;
    resolve_model_argument(arguments_, notice());
    settle_ranks(arguments_, ranks_.size());
    check_precision(arguments_.run.engine.precision, arguments_.run.engine.gemm.tf32);
    launch_.use_communicator(arguments_.communicator, arguments_.run.engine.parallel.deterministic);
  });
  for (const std::string& remark : arguments_.remarks) notice()(remark);
  watch_walltime();
  if (arguments_.dry_run) return say_what_would_be();
  RunOutput output(ranks_, arguments_.run.engine.output, train::output_rules(arguments_.overwrite, arguments_.resume));
  return output.finished() ? report_finished(output) : run_in(output);
}

void TrainCommand::write_trace() {
  if (arguments_.trace.empty()) return;
  const std::vector<std::string> ranks = parallel::gather(ranks_, chrome_events(ranks_.rank(), Trace::events()));
  parallel::on_first_rank(ranks_, [&] {
    data::write_text(arguments_.trace, chrome_trace(ranks));
    return std::string();
  });
}

/// One rank asks the scheduler, and ends the run for all.
void TrainCommand::watch_walltime() {
  if (!arguments_.stop_before && !arguments_.walltime) return;
  static constexpr double usual_margin = 300.0;
  parallel::on_first_rank(ranks_, [this] {
    const double gone = std::chrono::duration<double>(Clock::now() - begin_).count();
    const double before = arguments_.stop_before.value_or(usual_margin);
    const std::optional<double> remaining =
        arguments_.walltime ? std::optional(*arguments_.walltime - gone) : train::remaining_walltime();
    if (!remaining) fail("--stop-before: no scheduler says when this job ends; give --walltime as well");
    if (*remaining <= before) {
      fail(fmt::format("--stop-before: {} before the walltime's end, of which {} are left",
                       train::duration_text(before), train::duration_text(*remaining)));
    }
    const std::chrono::duration<double> until(*remaining - before);
    arguments_.run.engine.stop_at = Clock::now() + std::chrono::duration_cast<Clock::duration>(until);
    return std::string();
  });
}

void TrainCommand::load_task() {
  const train::RunConfig& run = arguments_.run;
  on_all_ranks(ranks_, [&] {
    const parallel::FileWork loading;
    task_.emplace(run.squad, run.engine.precision, run.engine.seed, notice());
  });
  parallel::expect_equal_on_all_ranks(ranks_, described_run());
  free_memory_ = train::available_memory();
}

/// What all ranks have to have alike, or they train different models.
std::vector<parallel::NamedValue> TrainCommand::described_run() const {
  const BuildInfo build = build_info();
  const auto checksum = [](const train::SquadWindows* windows) {
    return windows == nullptr ? std::string("none") : fmt::format("{:08x}", windows->checksum());
  };
  const train::SquadEvaluation* evaluation = task_->evaluation();
  return {{"the build", fmt::format("{} {} {}", build.version, build.commit, build.compiler)},
          {"the configuration", settings_json(*find_command("train"), arguments_).dump()},
          {"the checksum of the training data", checksum(task_->train_windows())},
          {"the checksum of the evaluation data", checksum(evaluation == nullptr ? nullptr : &evaluation->windows())}};
}

void TrainCommand::say_banner(const train::Trainer& trainer) const {
  if (!is_first()) return;
  std::cerr << run_banner(describe_run(arguments_, *task_, trainer, launch_, free_memory_)) << std::flush;
}

/// Everything but the run: nothing is written.
int TrainCommand::say_what_would_be() {
  load_task();
  const train::Trainer trainer(arguments_.run.engine, *task_, train::ranks_of(launch_));
  say_banner(trainer);
  return 0;
}

void print_results(const train::OutputDirectory& output) { print(output.results().value_or("")); }

/// Its results are printed whatever this run was told; what it was told otherwise is named.
int TrainCommand::report_finished(const RunOutput& output) const {
  if (!is_first()) return 0;
  const train::OutputDirectory& directory = *output.directory();
  const std::vector<std::string> differing =
      differing_settings(directory.saved_run(), *find_command("train"), arguments_);
  const std::string which = differing.empty()
                                ? "this run, finished"
                                : fmt::format("a finished run with other options: {}", fmt::join(differing, "; "));
  log_line(fmt::format("{} holds {}; --overwrite trains anew", directory.path().string(), which));
  print_results(directory);
  return 0;
}

train::ProgressView TrainCommand::progress_view() const {
  train::ProgressView view = train::stderr_view();
  view.terminal = view.terminal && !arguments_.verbose;
  view.speaker = speaker();
  if (arguments_.run.engine.gemm.tf32) return view;
  const Calibration here{.device = device_name(),
                         .threads = launch_.threads(),
                         .precision = arguments_.run.engine.precision,
                         .layers = task_->bert().num_hidden_layers,
                         .hidden = task_->bert().hidden_size};
  view.ceiling = static_cast<double>(ranks_.size()) * measured_products(here, saved_calibrations());
  return view;
}

/// Collective where ranks compute on GPUs.
void TrainCommand::tell_of_unwatched(const train::GpuMonitor& monitor) {
  if (launch_.place().device.empty()) return;
  const std::vector<std::string> obstacles = parallel::gather(ranks_, monitor.obstacle());
  if (!is_first()) return;
  for (const std::string& line : train::unwatched_lines(obstacles)) log_line(line);
}

/// The output directory has begun, as `run` says.
train::RunResult TrainCommand::train_and_report(train::Trainer& trainer, const nlohmann::ordered_json& run) {
  const std::filesystem::path& output = arguments_.run.engine.output;
  std::optional<train::Progress> progress;
  std::optional<Writers> written;
  StepNotes notes(launch_);
  train::GpuMonitor monitor(
      output, launch_.places(), ranks_.rank(),
      {train::gpu_sample_interval(launch_.nodes()), [](const std::string& line) { log_line(line); }});
  tell_of_unwatched(monitor);
  std::vector<train::Reporter*> reporters = {&notes, &monitor};
  if (speaks()) reporters.push_back(&progress.emplace(std::cerr, progress_view()));
  parallel::on_first_rank(ranks_, [&] {
    train::cut_metrics(output / "metrics.jsonl", trainer.first_step());
    train::cut_evaluations(output, trainer.first_step());
    written.emplace(output, run);
    reporters.insert(reporters.end(), {&written->metrics, &written->tensorboard});
    return std::string();
  });
  constexpr std::size_t most_events = 20'000;
  if (!arguments_.trace.empty()) Trace::start(most_events);
  train::RunResult result = trainer.run(reporters, run.dump());
  parallel::on_first_rank(ranks_, [&] {
    result.joules = written->tensorboard.close(result.signal == 0);
    return std::string();
  });
  return result;
}

/// Takes over what the run of a checkpoint was told, and says where it goes on.
void TrainCommand::take_up(const std::filesystem::path& checkpoint) {
  const parallel::CheckpointRecord record = parallel::read_checkpoint_record(ranks_, checkpoint);
  on_all_ranks(ranks_, [&] { take_up_run(record.text("configuration"), checkpoint, arguments_); });
  arguments_.run.engine.checkpoints.resume = checkpoint;
  if (is_first()) log_line(fmt::format("goes on after step {}, from {}", record.integer("step"), checkpoint.string()));
}

/// The run in a directory that is ours.
int TrainCommand::run_in(RunOutput& output) {
  if (!output.checkpoint().empty()) take_up(output.checkpoint());
  load_task();
  train::Trainer trainer(arguments_.run.engine, *task_, train::ranks_of(launch_));
  say_banner(trainer);
  const nlohmann::ordered_json run = run_json(arguments_, *task_, trainer, launch_);
  output.use([&](train::OutputDirectory& directory) {
    directory.check_space(output_bytes(*task_));
    directory.begin(run);
  });
  const train::SignalGuard signals;  // what follows the last step is written to its end
  train::RunResult result;
  output.tell_failure([&] { result = train_and_report(trainer, run); });
  output.use([&](train::OutputDirectory& directory) {
    result.signal == 0 ? directory.finish() : directory.end(interruption_text(result));
  });
  write_trace();
  if (is_first()) {
    print_results(*output.directory());
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    std::cerr << train::closing_line(result, seconds) << std::flush;
  }
  return train::exit_code_of(result.signal);
}

}  // namespace

int run_train(const Arguments& told) {
  const Clock::time_point begin = Clock::now();
  const train::PromptEnd prompt_end;  // until the run begins; then the trainer waits for a step's end
  parallel::Launch launch;
  return on_ranks(launch, [&] { return TrainCommand(launch, told, begin).run(); });
}

}  // namespace mylos::app
