#include "app/options/consistency.hpp"
#include "app/options/train_options.hpp"
#include "app/program/build_info.hpp"
#include "app/program/compute.hpp"
#include "app/program/model_argument.hpp"
#include "app/program/on_ranks.hpp"
#include "app/program/replaceable_file.hpp"
#include "app/run_commands.hpp"
#include "app/runs/prepared_run.hpp"
#include "app/runs/recorded_training.hpp"
#include "app/runs/resumption.hpp"
#include "app/runs/run_description.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/options/walltime.hpp"
#include "core/base/process/signals.hpp"
#include "core/base/stopwatch.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "core/trace.hpp"
#include "data/huggingface/model_names.hpp"
#include "families/model_directory.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"
#include "parallel/launch/launch_remarks.hpp"
#include "parallel/launch/launcher.hpp"
#include "train/engine/loop/training_scores.hpp"
#include "train/monitor/output_directory.hpp"
#include "train/monitor/progress.hpp"
#include "train/monitor/run_banner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

/// mylos train: trains a model. All ranks call the same functions.
namespace mylos::app {
namespace {

using Clock = std::chrono::steady_clock;

/// The output directory of a run on several ranks. Only the first rank reads and writes it. Every call is collective.
/// Errors: those of train::OutputDirectory, on every rank.
class RunOutput {
 public:
  RunOutput(parallel::Communicator& ranks, const std::filesystem::path& path, const train::OutputRules& rules)
      : ranks_(ranks) {
    start_ = parallel::on_first_rank(ranks, [&] {
      directory_.emplace(path, rules);
      return directory_->start();
    });
  }

  const train::OutputStart& start() const { return start_; }
  /// Calls `use` on the first rank.
  void use(const std::function<void(train::OutputDirectory&)>& use) {
    parallel::on_first_rank(ranks_, [&] { use(*directory_); });
  }
  /// Calls `work`. An error of the first rank is also recorded in the run's files, for readers who see only these.
  /// Collective if `work` is.
  void report_failure(const std::function<void()>& work) {
    try {
      work();
    } catch (const std::exception& error) {
      try {
        if (directory_) directory_->end(fmt::format("failed: {}", error.what()));
      } catch (const std::exception&) {  // the first error is the one to report
      }
      throw;
    }
  }

  /// Returns the directory on the first rank; null on the others.
  const train::OutputDirectory* directory() const { return directory_ ? &*directory_ : nullptr; }

 private:
  parallel::Communicator& ranks_;
  std::optional<train::OutputDirectory> directory_;
  train::OutputStart start_;
};

/// Returns the bytes of best/, last/, the other models that are kept, and the copy that replaces one of them; what is
/// exported is written as float.
std::size_t output_bytes(const tasks::Task& task, const train::TrainConfig& engine, std::size_t steps) {
  const std::size_t kept = std::min(engine.best.keep, steps / train::evaluation_interval(engine, task) + 1);
  std::size_t exported = 0;
  for (const ParameterTensor& tensor : task.model().table().tensors()) {
    if (task.exporter() == nullptr || task.exporter()->exports(tensor)) exported += tensor.size;
  }
  return (2 + kept) * exported * sizeof(float);
}

/// Reports unused GPUs, and ranks whose processors round differently. Errors: std::runtime_error if
/// --deterministic cannot hold.
void look_at_launch(const TrainRank& rank, const train::TrainConfig& engine) {
  const std::vector<parallel::RankPlacement>& placements = rank.launch.placements();
  const std::string unused = parallel::unused_devices(placements, parallel::process_environment);
  if (!unused.empty()) rank.notice()(unused);
  const std::string differing = parallel::differing_processors(placements);
  if (differing.empty()) return;
  if (engine.parallel.deterministic) {
    fail(fmt::format("--deterministic: {}; use nodes of one kind (srun --constraint), or leave it out", differing));
  }
  if (engine.precision == Precision::float32) return;
  rank.notice()(fmt::format("{}; {} is not rounded alike on them", differing, to_string(engine.precision)));
}

/// Selects the library that exchanges arrays of devices, and says which one that is. Collective.
void use_communicator(const TrainRank& rank, const Arguments& arguments) {
  const parallel::CommunicatorChoice& choice =
      rank.launch.use_communicator(arguments.train->communicator, train::device_sums(arguments.run.engine));
  if (!choice.remark.empty()) rank.notice()(choice.remark);
  if (!choice.nccl || rank.launch.nodes() == 1) return;
  rank.notice()(parallel::nccl_network(parallel::process_environment));
  const std::string over_tcp = parallel::nccl_over_tcp(parallel::process_environment);
  if (!over_tcp.empty()) rank.notice()(over_tcp);
}

/// Resolves what the arguments leave to the model's files, the number of ranks and the hardware.
void resolve_arguments(const TrainRank& rank, Arguments& arguments) {
  rank.launch.set_time_limit(std::chrono::duration<double>(arguments.collective_timeout));
  on_all_ranks_with_copies(rank.ranks, [&](const FileReader& files) {
    const parallel::FileWork looking;
    resolve_model_argument(files, arguments, rank.notice());
    resolve_ranks(arguments, rank.ranks.size());
    const train::TrainConfig& engine = arguments.run.engine;
    check_precision(engine.precision, engine.gemm.tf32);
    look_at_launch(rank, engine);
  });
  if (runs_on_host) {
    arguments.remarks.push_back(precision_remark(arguments.run.engine.precision, present_cpu_feature_names()));
  }
  for (const std::string& remark : arguments.remarks) {
    if (!remark.empty()) rank.notice()(remark);
  }
  use_communicator(rank, arguments);
}

/// Checks that the trace file may be written. --overwrite does not apply to it, only to runs.
void check_trace(const TrainRank& rank, const std::filesystem::path& trace) {
  if (trace.empty()) return;
  const auto is_ours = [](const std::filesystem::path& file) { return is_chrome_trace(beginning_of(file)); };
  parallel::on_first_rank(rank.ranks, [&] {
    check_replaceable({"--trace", trace, "a trace of Mylos", is_ours, "remove it"}, false);
  });
}

/// The first rank writes the events of each rank as they come, so that it never holds those of all.
void write_trace(const TrainRank& rank, const std::filesystem::path& trace) {
  if (trace.empty()) return;
  std::optional<StagedFile> file;
  parallel::on_first_rank(rank.ranks, [&] { file.emplace(trace); });
  parallel::gather_in_pieces(rank.ranks, chrome_trace_part(rank.ranks.rank(), rank.ranks.size(), Trace::events()),
                             [&](std::string_view piece) { file->write(piece); });
  parallel::on_first_rank(rank.ranks, [&] { file->commit(); });
}

/// Sets when the run ends; `since_start` counts from the start of the program. The first rank queries the scheduler and
/// ends the run for all.
void watch_walltime(const TrainRank& rank, Arguments& arguments, const Stopwatch& since_start) {
  if (!arguments.train->stop_before && !arguments.train->walltime) return;
  static constexpr double usual_margin = 300.0;
  parallel::on_first_rank(rank.ranks, [&] {
    const double before = arguments.train->stop_before.value_or(usual_margin);
    const std::optional<double> remaining = arguments.train->walltime
                                                ? std::optional(*arguments.train->walltime - since_start.seconds())
                                                : remaining_walltime();
    if (!remaining) fail("--stop-before: no scheduler reports when this job ends; give --walltime, too");
    if (std::isinf(*remaining)) {
      return log_line("--stop-before has no effect: this job has no time limit (--walltime sets one)");
    }
    if (*remaining <= before) {
      fail(fmt::format("--stop-before: {} before the time limit, but only {} are left", duration_text(before),
                       duration_text(*remaining)));
    }
    const std::chrono::duration<double> until(*remaining - before);
    arguments.run.engine.stop_at = Clock::now() + std::chrono::duration_cast<Clock::duration>(until);
  });
}

/// `arguments` must outlive the rules.
train::OutputRules output_rules(const Arguments& arguments) {
  train::OutputRules rules = train::output_rules(arguments.overwrite, arguments.train->resume);
  rules.extend = arguments.train->extend;
  rules.compare = [&arguments](const auto& saved) { return difference_from_run(saved, arguments); };
  return rules;
}

/// Logs the state of the output directory if it affects the start of the run. Errors: UsageError if it holds a finished
/// run of another command.
void say_start(const TrainRank& rank, const std::filesystem::path& output, const train::OutputStart& start) {
  if (rank.is_first() && !start.remark.empty()) log_line(start.remark);
  if (!start.differing.empty()) {
    throw UsageError(
        fmt::format("--output {} contains a finished run with other options: {}; choose another directory, continue to "
                    "larger --steps or --epochs with --extend, or start over with --overwrite",
                    output.string(), fmt::join(start.differing, "; ")));
  }
  if (!rank.is_first() || !start.finished) return;
  log_line(fmt::format("{} contains this run, which has finished{}", output.string(),
                       start.remark.empty() ? "; --overwrite starts over" : ""));
}

void warn_without_lock(const std::filesystem::path& output, const train::OutputDirectory* directory) {
  if (directory == nullptr || directory->lock() == nullptr || directory->lock()->obstacle().empty()) return;
  log_line(fmt::format("warning: --output {}: the file system has no locks ({}): do not let another run write there",
                       output.string(), directory->lock()->obstacle()));
}

void warn_without_cache(const TrainRank& rank) {
  if (!rank.is_first()) return;
  const std::string obstacle = data::cache_obstacle();
  if (!obstacle.empty()) log_line(fmt::format("warning: timings of kernels cannot be stored: {}", obstacle));
}

void say_banner(const TrainRank& rank, const Arguments& arguments, const PreparedRun& run) {
  if (!rank.is_first()) return;
  log_text(run_banner(describe_run(arguments, *run.task, run.trainer, rank.launch, run.free_memory)));
}

/// Does everything except the run itself, and writes nothing.
void try_run(const TrainRank& rank, Arguments& arguments) {
  const std::filesystem::path& output = arguments.run.engine.output;
  const train::OutputStart start =
      parallel::on_first_rank(rank.ranks, [&] { return train::decide_start(output, output_rules(arguments)); });
  say_start(rank, output, start);
  if (start.checkpoint.empty() && !start.finished && rank.is_first()) log_line("would begin at step 1");
  const PreparedRun run = prepare_run(rank, arguments, start.checkpoint);
  say_banner(rank, arguments, run);
}

/// Reports records that could not be written, after the run has finished. Errors: std::runtime_error. If a signal ended
/// the run, only logs them, because the exit code promises nothing but a checkpoint.
void report_unwritten(const TrainRank& rank, const RecordedTraining& training) {
  parallel::on_first_rank(rank.ranks, [&] {
    for (const std::string& line : training.unwritten) {
      if (training.result.signal == 0) fail(line + "; the model itself is written");
      log_line(line);
    }
  });
}

void print_results(const train::OutputDirectory& output) { print(output.results().value_or("")); }

/// Runs in an output directory that this process owns. `since_start` counts from the start of the program. Returns the
/// exit code.
int run_in(RunOutput& output, const TrainRank& rank, Arguments& arguments, const Stopwatch& since_start) {
  if (output.directory() != nullptr) arguments.run.engine.lock = output.directory()->lock();
  PreparedRun run = prepare_run(rank, arguments, output.start().checkpoint);
  say_banner(rank, arguments, run);
  const nlohmann::ordered_json description = run_json(arguments, *run.task, run.trainer, rank.launch, run.attention);
  const std::string changed_layout = changed_layout_line(run.resumed, description);
  if (rank.is_first() && !changed_layout.empty()) log_line(changed_layout);
  output.use([&](train::OutputDirectory& directory) {
    directory.check_space(output_bytes(*run.task, arguments.run.engine, run.trainer.steps()));
    directory.begin(description);
  });
  const SignalGuard signals;  // protects what is written after the last step
  RecordedTraining training;
  output.report_failure([&] { training = train_and_record(rank, arguments, run, description); });
  const train::RunResult& result = training.result;
  output.use([&](train::OutputDirectory& directory) {
    result.signal == 0 ? directory.finish() : directory.end(interruption_text(result));
  });
  write_trace(rank, arguments.train->trace);
  report_unwritten(rank, training);
  if (rank.is_first()) {
    if (result.signal != 0) log_line(how_to_go_on(arguments, output.start().goes_on, rank.ranks.size()));
    print_results(*output.directory());
    for (const std::string& line : run.task->closing_lines()) log_line(line);
    log_text(training.nodes);
    if (arguments.train->profile) log_text(training.profile.table(since_start.seconds()));
    log_text(train::closing_line(result, since_start.seconds()));
  }
  return exit_code_of(result.signal);
}

int train_on(const TrainRank& rank, Arguments arguments, const Stopwatch& since_start) {
  resolve_arguments(rank, arguments);
  warn_without_cache(rank);
  check_trace(rank, arguments.train->trace);
  watch_walltime(rank, arguments, since_start);
  if (arguments.train->dry_run) {
    try_run(rank, arguments);
    return 0;
  }
  const std::filesystem::path& path = arguments.run.engine.output;
  RunOutput output(rank.ranks, path, output_rules(arguments));
  warn_without_lock(path, output.directory());
  say_start(rank, path, output.start());
  if (!output.start().finished) return run_in(output, rank, arguments, since_start);
  if (rank.is_first()) print_results(*output.directory());
  return 0;
}

/// Starts the ranks, and trains with the result of `arguments_of`, which every rank calls. Until then a rank waits at
/// most `collective_timeout` seconds for others.
int launch_training(double collective_timeout, const std::function<Arguments(parallel::Communicator&)>& arguments_of) {
  const Stopwatch since_start;
  // Only one rank prints the notice.
  if (parallel::launched_rank(parallel::process_environment) == 0) {
    set_termination_notice(parallel::termination_notice(parallel::process_environment));
  }
  const PromptEnd prompt_end;  // until the run begins; then the trainer waits for the end of a step
  parallel::Launch launch{std::chrono::duration<double>(collective_timeout)};
  return on_ranks(launch, [&] {
    const ComputeScope compute(launch);  // early, because the ranks' communicator needs it
    const Arguments arguments = arguments_of(launch.world());
    const TrainRank rank{launch, launch.world(), arguments.train->verbose};
    return train_on(rank, arguments, since_start);
  });
}

}  // namespace

int run_train(const Arguments& arguments) {
  return launch_training(arguments.collective_timeout, [&](parallel::Communicator&) { return arguments; });
}

int run_launched_train(double collective_timeout, const std::function<Arguments(const FileReader& files)>& parse) {
  return launch_training(collective_timeout, [&](parallel::Communicator& ranks) {
    Arguments arguments;
    on_all_ranks_with_copies(ranks, [&](const FileReader& files) { arguments = parse(files); });
    return arguments;
  });
}

}  // namespace mylos::app
