#include "app/bench/calibration.hpp"
#include "app/options/commands.hpp"
#include "app/options/config_file.hpp"
#include "app/options/consistency.hpp"
#include "app/program/build_info.hpp"
#include "app/program/compute.hpp"
#include "app/program/model_argument.hpp"
#include "app/program/on_ranks.hpp"
#include "app/program/replaceable_file.hpp"
#include "app/run_commands.hpp"
#include "app/runs/command_line.hpp"
#include "app/runs/resumption.hpp"
#include "app/runs/run_description.hpp"
#include "app/runs/run_output.hpp"
#include "core/base/error.hpp"
#include "core/base/files.hpp"
#include "core/base/quantities.hpp"
#include "core/base/signals.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "core/base/walltime.hpp"
#include "core/trace.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/consistency.hpp"
#include "parallel/communicator/file_work.hpp"
#include "parallel/launch/launcher.hpp"
#include "train/engine/evaluation_files.hpp"
#include "train/engine/memory.hpp"
#include "train/engine/run_bounds.hpp"
#include "train/monitor/gpu_monitor.hpp"
#include "train/monitor/metrics_file.hpp"
#include "train/monitor/progress.hpp"
#include "train/monitor/tensorboard.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// mylos train: trains a model.
namespace mylos::app {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns the bytes of best/, last/ and the copy that replaces one of them; parameters are written as float.
std::size_t output_bytes(const tasks::Task& task) { return 3 * task.model().table().size() * sizeof(float); }

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
  void step(const train::StepReport& report) override { launch_.note_step(report.step + 1); }

 private:
  parallel::Launch& launch_;
};

/// mylos train on one rank. All ranks call the same functions.
class TrainCommand {
 public:
  TrainCommand(parallel::Launch& launch, const Arguments& configured, Clock::time_point begin)
      : launch_(launch), ranks_(launch.world()), compute_(launch), arguments_(configured), begin_(begin) {}

  int run();

 private:
  bool is_first() const { return ranks_.rank() == 0; }
  bool speaks() const { return is_first() || arguments_.verbose; }
  std::string speaker() const { return arguments_.verbose ? fmt::format("rank {}: ", ranks_.rank()) : ""; }
  train::ProgressView progress_view() const;
  void report_unwatched(const train::GpuMonitor& monitor);
  Notice notice() const {
    if (!speaks()) return [](const std::string&) {};
    return [speaker = speaker()](const std::string& line) { log_line(speaker + line); };
  }
  void watch_walltime();
  void check_trace() const;
  train::OutputRules output_rules() const;
  void write_trace();
  void load_task();
  void drop_foreign_layout();
  std::vector<parallel::NamedValue> described_run() const;
  void say_banner(const train::Trainer& trainer) const;
  int say_what_would_be();
  int report_finished(const RunOutput& output) const;
  void warn_without_lock(const RunOutput& output) const;
  void say_start(const train::OutputStart& start) const;
  int run_in(RunOutput& output);
  void take_up(const std::filesystem::path& checkpoint);
  void check_data() const;
  void check_extension();
  void report_unwritten(int signal);
  train::RunResult train_and_report(train::Trainer& trainer, const nlohmann::ordered_json& run);

  parallel::Launch& launch_;
  parallel::Communicator& ranks_;
  ComputeScope compute_;  ///< initialized early, because the ranks' communicator needs it
  Arguments arguments_;
  Clock::time_point begin_;
  std::unique_ptr<tasks::Task> task_;
  nlohmann::ordered_json resumed_;  ///< run.json of the resumed run; null in a new run
  std::size_t free_memory_ = 0;
  std::vector<std::string> unwritten_;        ///< on the first rank, lines about records missing from the run's files
  std::optional<std::size_t> extended_from_;  ///< number of steps of the run that --extend continues
};

int TrainCommand::run() {
  launch_.set_time_limit(std::chrono::duration<double>(arguments_.collective_timeout));
  on_all_ranks(ranks_, [this] {
    const parallel::FileWork looking;
    resolve_model_argument(arguments_, notice());
    resolve_ranks(arguments_, ranks_.size());
    check_precision(arguments_.run.engine.precision, arguments_.run.engine.gemm.tf32);
    const bool ordered_sums = arguments_.run.engine.parallel.deterministic;
    if (const std::string remark = launch_.use_communicator(arguments_.communicator, ordered_sums); !remark.empty()) {
      notice()(remark);
    }
  });
  for (const std::string& remark : arguments_.remarks) notice()(remark);
  check_trace();
  watch_walltime();
  if (arguments_.dry_run) return say_what_would_be();
  RunOutput output(ranks_, arguments_.run.engine.output, output_rules());
  warn_without_lock(output);
  say_start(output.start());
  return output.start().finished ? report_finished(output) : run_in(output);
}

/// Checks that the trace file may be written. --overwrite does not apply to it, only to runs.
void TrainCommand::check_trace() const {
  if (arguments_.trace.empty()) return;
  const auto is_ours = [](const std::filesystem::path& file) { return is_chrome_trace(beginning_of(file)); };
  parallel::on_first_rank(ranks_, [&] {
    check_replaceable({"--trace", arguments_.trace, "a trace of Mylos", is_ours, "remove it"}, false);
  });
}

train::OutputRules TrainCommand::output_rules() const {
  train::OutputRules rules = train::output_rules(arguments_.overwrite, arguments_.resume);
  rules.extend = arguments_.extend;
  rules.compare = [this](const auto& saved) { return difference_from_run(saved, arguments_); };
  return rules;
}

void TrainCommand::write_trace() {
  if (arguments_.trace.empty()) return;
  const std::vector<std::string> ranks =
      parallel::gather_on_first_rank(ranks_, chrome_events(ranks_.rank(), Trace::events()));
  parallel::on_first_rank(ranks_, [&] { write_text(arguments_.trace, chrome_trace(ranks)); });
}

/// Sets when the run ends. The first rank queries the scheduler and ends the run for all.
void TrainCommand::watch_walltime() {
  if (!arguments_.stop_before && !arguments_.walltime) return;
  static constexpr double usual_margin = 300.0;
  parallel::on_first_rank(ranks_, [this] {
    const double gone = std::chrono::duration<double>(Clock::now() - begin_).count();
    const double before = arguments_.stop_before.value_or(usual_margin);
    const std::optional<double> remaining =
        arguments_.walltime ? std::optional(*arguments_.walltime - gone) : remaining_walltime();
    if (!remaining) fail("--stop-before: no scheduler says when this job ends; give --walltime as well");
    if (*remaining <= before) {
      fail(fmt::format("--stop-before: {} before the walltime's end, of which {} are left", duration_text(before),
                       duration_text(*remaining)));
    }
    const std::chrono::duration<double> until(*remaining - before);
    arguments_.run.engine.stop_at = Clock::now() + std::chrono::duration_cast<Clock::duration>(until);
  });
}

void TrainCommand::load_task() {
  on_all_ranks(ranks_, [&] {
    const parallel::FileWork loading;
    task_ = arguments_.task->make(arguments_.run, notice());
  });
  parallel::expect_equal_on_all_ranks(ranks_, described_run());
  drop_foreign_layout();
  free_memory_ = train::available_memory();
}

/// Returns the values that must be equal on all ranks; otherwise they would train different models.
std::vector<parallel::NamedValue> TrainCommand::described_run() const {
  const BuildInfo build = build_info();
  std::vector<parallel::NamedValue> values = {
      {"the build", fmt::format("{} {} {}", build.version, build.commit, build.compiler)},
      {"the configuration", settings_json(*find_command("train"), arguments_).dump()}};
  for (const tasks::DataChecksum& data : task_->data_checksums()) {
    values.emplace_back(fmt::format("the checksum of --{}'s data", data.option), checksum_text(data));
  }
  return values;
}

void TrainCommand::say_banner(const train::Trainer& trainer) const {
  if (!is_first()) return;
  log_text(run_banner(describe_run(arguments_, *task_, trainer, launch_, free_memory_)));
}

/// Drops the recorded layout if it is from another kind of device, whose memory differs.
void TrainCommand::drop_foreign_layout() {
  auto& recorded = arguments_.run.engine.recorded_layout;
  if (recorded && !runs_on_host && recorded->device != device_name()) recorded.reset();
}

/// Logs the state of the output directory if it affects the start of the run. Errors: UsageError if it holds a finished
/// run of another command.
void TrainCommand::say_start(const train::OutputStart& start) const {
  const std::string output = arguments_.run.engine.output.string();
  if (!start.differing.empty()) {
    throw UsageError(
        fmt::format("--output {} holds a finished run with other options: {}; choose another directory, "
                    "go on to more --steps or --epochs with --extend, or train anew with --overwrite",
                    output, fmt::join(start.differing, "; ")));
  }
  if (!is_first()) return;
  if (start.finished) log_line(fmt::format("{} holds this run, finished; --overwrite trains anew", output));
  if (!start.remark.empty()) log_line(start.remark);
}

void TrainCommand::warn_without_lock(const RunOutput& output) const {
  const std::string obstacle = output.directory() == nullptr ? "" : output.directory()->lock_obstacle();
  if (obstacle.empty()) return;
  log_line(fmt::format("warning: --output {}: the file system has no locks ({}): let no other run write there",
                       arguments_.run.engine.output.string(), obstacle));
}

/// Does everything except the run itself, and writes nothing.
int TrainCommand::say_what_would_be() {
  const train::OutputStart start =
      agreed_start(ranks_, [&] { return train::decide_start(arguments_.run.engine.output, output_rules()); });
  say_start(start);
  if (!start.checkpoint.empty()) {
    take_up(start.checkpoint);
  } else if (is_first() && !start.finished) {
    log_line("would begin at step 1");
  }
  load_task();
  check_data();
  check_extension();
  const train::Trainer trainer(arguments_.run.engine, *task_, train::ranks_of(launch_));
  say_banner(trainer);
  return 0;
}

void print_results(const train::OutputDirectory& output) { print(output.results().value_or("")); }

int TrainCommand::report_finished(const RunOutput& output) const {
  if (is_first()) print_results(*output.directory());
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
                         .model = model_size(task_->model())};
  view.ceiling = static_cast<double>(ranks_.size()) * measured_products(here, saved_calibrations());
  return view;
}

/// Logs GPUs that cannot be monitored. Collective if ranks compute on GPUs.
void TrainCommand::report_unwatched(const train::GpuMonitor& monitor) {
  if (launch_.placement().device.empty()) return;
  const std::vector<std::string> obstacles = parallel::gather(ranks_, monitor.obstacle());
  if (!is_first()) return;
  for (const std::string& line : train::unwatched_lines(obstacles)) log_line(line);
}

/// Trains and writes records. Requires that the output directory has been started with `run`.
train::RunResult TrainCommand::train_and_report(train::Trainer& trainer, const nlohmann::ordered_json& run) {
  const std::filesystem::path& output = arguments_.run.engine.output;
  std::optional<train::Progress> progress;
  std::optional<Writers> written;
  StepNotes notes(launch_);
  train::GpuMonitor monitor(
      output, launch_.placements(), ranks_.rank(),
      {train::gpu_sample_interval(launch_.nodes()), [](const std::string& line) { log_line(line); }});
  report_unwatched(monitor);
  std::vector<train::Reporter*> reporters = {&notes, &monitor};
  if (speaks()) reporters.push_back(&progress.emplace(std::cerr, progress_view()));
  parallel::on_first_rank(ranks_, [&] {
    train::cut_metrics(output / "metrics.jsonl", trainer.first_step(), trainer.evaluation_due());
    train::cut_evaluations(output, trainer.first_step(), trainer.evaluation_due());
    written.emplace(output, run);
    reporters.insert(reporters.end(), {&written->metrics, &written->tensorboard});
  });
  constexpr std::size_t most_events = 20'000;
  if (!arguments_.trace.empty()) Trace::start(most_events);
  train::RunResult result = trainer.run(reporters, run.dump());
  parallel::on_first_rank(ranks_, [&] {
    result.joules = written->tensorboard.close(result.signal == 0);
    unwritten_ = written->missing();
  });
  return result;
}

/// Resumes the run of a checkpoint: takes over its settings, and logs the step at which it continues.
void TrainCommand::take_up(const std::filesystem::path& checkpoint) {
  const parallel::CheckpointRecord record = parallel::read_checkpoint_record(ranks_, checkpoint);
  train::CheckpointConfig& checkpoints = arguments_.run.engine.checkpoints;
  on_all_ranks(ranks_, [&] {
    auto [run, extends] = take_up_run(record.text("configuration"), checkpoint, arguments_);
    resumed_ = std::move(run);
    checkpoints.extend = extends;
  });
  if (checkpoints.extend) extended_from_ = record.integer("steps");
  checkpoints.resume = checkpoint;
  if (!is_first()) return;
  log_line(fmt::format("{} after step {}, from {}", arguments_.dry_run ? "would go on" : "goes on",
                       record.integer("step"), checkpoint.string()));
}

/// Checks that the data of a resumed run are unchanged.
void TrainCommand::check_data() const {
  if (resumed_.is_null()) return;
  on_all_ranks(
      ranks_, [&] { check_resumed_data(resumed_, arguments_.run.engine.checkpoints.resume, task_->data_checksums()); });
}

/// Logs the new length of an extended run. Errors: UsageError if the new length is not larger than before.
void TrainCommand::check_extension() {
  if (!extended_from_) return;
  const std::size_t steps = train::total_steps(arguments_.run.engine, *task_), before = *extended_from_;
  on_all_ranks(ranks_, [&] {
    if (steps > before) return;
    throw UsageError(fmt::format("--extend: the run has {} and is to have {}; give more --steps or --epochs",
                                 count_of(before, "step"), count_text(steps)));
  });
  if (is_first()) {
    log_line(fmt::format("extended from {} to {}: the learning rate follows the longer schedule from here on",
                         count_of(before, "step"), count_text(steps)));
  }
}

/// Reports records that could not be written, after the run has finished. Errors: std::runtime_error. If a signal ended
/// the run, only logs them, because the exit code promises nothing but a checkpoint.
void TrainCommand::report_unwritten(int signal) {
  parallel::on_first_rank(ranks_, [&] {
    for (const std::string& line : unwritten_) {
      if (signal == 0) fail(line + "; the model itself is written");
      log_line(line);
    }
  });
}

/// Runs in an output directory that this process owns.
int TrainCommand::run_in(RunOutput& output) {
  if (!output.start().checkpoint.empty()) take_up(output.start().checkpoint);
  load_task();
  check_data();
  check_extension();
  train::Trainer trainer(arguments_.run.engine, *task_, train::ranks_of(launch_));
  say_banner(trainer);
  const nlohmann::ordered_json run = run_json(arguments_, *task_, trainer, launch_);
  if (const std::string line = changed_layout_line(resumed_, run); is_first() && !line.empty()) log_line(line);
  output.use([&](train::OutputDirectory& directory) {
    directory.check_space(output_bytes(*task_));
    directory.begin(run);
  });
  const SignalGuard signals;  // protects what is written after the last step
  train::RunResult result;
  output.report_failure([&] { result = train_and_report(trainer, run); });
  output.use([&](train::OutputDirectory& directory) {
    result.signal == 0 ? directory.finish() : directory.end(interruption_text(result));
  });
  write_trace();
  report_unwritten(result.signal);
  if (is_first()) {
    if (result.signal != 0) log_line(how_to_go_on(arguments_, output.start().goes_on, ranks_.size()));
    print_results(*output.directory());
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    log_text(train::closing_line(result, seconds));
  }
  return exit_code_of(result.signal);
}

}  // namespace

int run_train(const Arguments& configured) {
  const Clock::time_point begin = Clock::now();
  // Only one rank prints the notice.
  if (parallel::launched_rank(parallel::process_environment) == 0) {
    set_termination_notice(parallel::termination_notice(parallel::process_environment));
  }
  const PromptEnd prompt_end;  // until the run begins; then the trainer waits for the end of a step
  parallel::Launch launch;
  return on_ranks(launch, [&] { return TrainCommand(launch, configured, begin).run(); });
}

}  // namespace mylos::app
