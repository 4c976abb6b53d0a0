#include "app/commands.hpp"
#include "app/compute.hpp"
#include "app/config_file.hpp"
#include "app/model_argument.hpp"
#include "app/run_description.hpp"
#include "app/standard_output.hpp"
#include "data/files.hpp"
#include "train/memory.hpp"
#include "train/metrics_file.hpp"
#include "train/output_directory.hpp"
#include "train/progress.hpp"
#include "train/signals.hpp"
#include "train/tensorboard.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <iostream>

/// mylos train: fine-tunes a model.
namespace mylos::app {
namespace {

using Clock = std::chrono::steady_clock;

void log_text(const std::string& text) { std::cerr << text << std::flush; }

/// Bytes that best/, last/ and the copy that replaces one of them take: parameters are written as float.
std::size_t output_bytes(const train::SquadTask& task) { return 3 * task.model().table().size() * sizeof(float); }

void print_results(const train::OutputDirectory& output) { print(output.results().value_or("")); }

/// Its results are printed whatever this run was told; what it was told otherwise is named.
int report_finished(const train::OutputDirectory& output, const Arguments& arguments) {
  const std::vector<std::string> differing = differing_settings(output.saved_run(), *find_command("train"), arguments);
  const std::string which = differing.empty()
                                ? "this run, finished"
                                : fmt::format("a finished run with other options: {}", fmt::join(differing, "; "));
  log_line(fmt::format("{} holds {}; --overwrite trains anew", output.path().string(), which));
  print_results(output);
  return 0;
}

/// Trains and reports. The output directory has begun.
train::RunResult train_and_report(const Arguments& arguments, train::Trainer& trainer) {
  const std::filesystem::path& directory = arguments.run.engine.output;
  train::Progress progress(std::cerr, train::stderr_view());
  train::MetricsFile metrics(directory / "metrics.jsonl");
  train::TensorBoard tensorboard(directory);
  const std::vector<train::Reporter*> reporters = {&progress, &metrics, &tensorboard};
  return trainer.run(reporters);
}

/// The run in a directory that is ours; `begin` is when the program began.
int run_in(train::OutputDirectory& output, const Arguments& arguments, Clock::time_point begin) {
  train::SquadTask task(arguments.run.squad, arguments.run.engine.precision, arguments.run.engine.seed, log_line);
  const ComputeScope compute;
  const std::size_t free_memory = train::available_memory();
  train::Trainer trainer(arguments.run.engine, task);
  log_text(run_banner(describe_run(arguments, task, trainer, free_memory)));
  output.check_space(output_bytes(task));
  output.begin(run_json(arguments, task, trainer));
  const train::SignalGuard signals;  // what follows the last step is written to its end
  const train::RunResult result = train_and_report(arguments, trainer);
  if (result.signal == 0) output.finish();
  print_results(output);
  log_text(train::closing_line(result, std::chrono::duration<double>(Clock::now() - begin).count()));
  return train::exit_code_of(result.signal);
}

/// Everything but the run: nothing is written.
int say_what_would_be(const Arguments& arguments) {
  train::SquadTask task(arguments.run.squad, arguments.run.engine.precision, arguments.run.engine.seed, log_line);
  const ComputeScope compute;
  const std::size_t free_memory = train::available_memory();
  const train::Trainer trainer(arguments.run.engine, task);
  log_text(run_banner(describe_run(arguments, task, trainer, free_memory)));
  return 0;
}

}  // namespace

int run_train(const Arguments& told) {
  const Clock::time_point begin = Clock::now();
  const train::PromptEnd prompt_end;  // until the run begins; then the trainer waits for a step's end
  Arguments arguments = told;
  resolve_model_argument(arguments);
  if (arguments.dry_run) return say_what_would_be(arguments);
  train::OutputDirectory output(arguments.run.engine.output, train::output_rules(arguments.overwrite));
  return output.finished() ? report_finished(output, arguments) : run_in(output, arguments, begin);
}

}  // namespace mylos::app
