#include "app/options/commands.hpp"
#include "app/options/config_file.hpp"
#include "app/program/build_info.hpp"
#include "app/program/compute.hpp"
#include "app/program/model_argument.hpp"
#include "app/run_commands.hpp"
#include "app/runs/evaluation_directory.hpp"
#include "core/base/error.hpp"
#include "core/base/text/standard_output.hpp"
#include "tasks/interface/attention_choice.hpp"
#include "train/engine/loop/evaluator.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <memory>
#include <string>

/// mylos eval: predicts the samples of a file and scores the predictions.
namespace mylos::app {
namespace {

/// Describes how the results were made: eval's options and the program.
nlohmann::ordered_json record_of(const Arguments& arguments) {
  nlohmann::ordered_json record = settings_json(*find_command("eval"), arguments);
  record[program_key] = program_json();
  return record;
}

/// Returns a line with the time of the predictions alone, and their loss if the samples have labels.
std::string prediction_line(const tasks::EvaluatedSamples& samples, double seconds, const train::Metrics& metrics) {
  const double* loss = train::find_metric(metrics, "validation_loss");
  return fmt::format("predicted {0} {1} in {2:.3f} s, {3:.1f} {1}/s{4}", samples.count, samples.name, seconds,
                     static_cast<double>(samples.count) / seconds,
                     loss == nullptr ? "" : fmt::format("; validation loss {:.6f}", *loss));
}

}  // namespace

int run_eval(const Arguments& configured) {
  Arguments arguments = configured;
  take_run_settings(*find_command("eval"), arguments);
  resolve_model_argument(FileReader(), arguments);
  arguments.run.task.dev = arguments.data;
  const train::TrainConfig& engine = arguments.run.engine;
  const EvaluationDirectory results(engine.output, arguments.overwrite);
  const ComputeScope compute;  // before the task, whose model depends on the device
  const std::unique_ptr<tasks::Task> task = make_with_data(*arguments.task, arguments.run, log_line);
  check_precision(engine.precision, engine.gemm.tf32);
  choose_attention(*parallel::make_self_communicator(), arguments.run, *task, log_line);
  train::Evaluator evaluator(*task, engine.precision, engine.gemm);
  const train::Metrics metrics = evaluator.evaluate();
  const double* loss = train::find_metric(metrics, "validation_loss");
  ensure(loss == nullptr || std::isfinite(*loss),
         fmt::format("{}: the model's outputs are not finite: its weights are damaged, its training diverged, or "
                     "--precision {} cannot hold them",
                     arguments.model, to_string(engine.precision)));
  results.begin(record_of(arguments));
  task->write_results(engine.output);
  log_line(prediction_line(task->evaluated(), evaluator.prediction_seconds(), metrics));
  for (const std::string& line : task->closing_lines()) log_line(line);
  const std::string scores = task->results_text();
  if (scores.empty()) log_line(fmt::format("{}: no gold answers, so nothing is scored", arguments.data.string()));
  print(scores);
  return 0;
}

}  // namespace mylos::app
