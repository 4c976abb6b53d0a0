#include "app/options/commands.hpp"
#include "app/options/config_file.hpp"
#include "app/program/build_info.hpp"
#include "app/program/compute.hpp"
#include "app/program/model_argument.hpp"
#include "app/run_commands.hpp"
#include "app/runs/evaluation_directory.hpp"
#include "core/base/standard_output.hpp"
#include "tasks/question_answering/squad_task.hpp"
#include "train/engine/evaluator.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

/// mylos eval: answers a file's questions and scores the answers.
namespace mylos::app {
namespace {

/// Describes how the results were made: eval's options and the program.
nlohmann::ordered_json record_of(const Arguments& arguments) {
  nlohmann::ordered_json record = settings_json(*find_command("eval"), arguments);
  record[program_key] = program_json();
  return record;
}

/// How long the predictions alone took, and their loss where the questions have answers.
std::string prediction_line(std::size_t windows, double seconds, const train::Metrics& metrics) {
  const double* loss = train::find_metric(metrics, "validation_loss");
  return fmt::format("predicted {} windows in {:.3f} s, {:.1f} windows/s{}", windows, seconds,
                     static_cast<double>(windows) / seconds,
                     loss == nullptr ? "" : fmt::format("; validation loss {:.6f}", *loss));
}

}  // namespace

int run_eval(const Arguments& told) {
  Arguments arguments = told;
  take_run_settings(*find_command("eval"), arguments);
  resolve_model_argument(arguments);
  arguments.run.squad.dev = arguments.data;
  const train::TrainConfig& engine = arguments.run.engine;
  const EvaluationDirectory results(engine.output, arguments.overwrite);
  tasks::SquadTask task(arguments.run.squad, engine.precision, engine.seed, log_line);
  const ComputeScope compute;
  check_precision(engine.precision, engine.gemm.tf32);
  train::Evaluator evaluator(task, engine.precision, engine.gemm);
  const train::Metrics metrics = evaluator.evaluate();
  results.begin(record_of(arguments));
  task.write_results(engine.output);
  log_line(prediction_line(task.evaluation()->windows().count(), evaluator.prediction_seconds(), metrics));
  const std::string& score = task.evaluation()->official_score();
  if (score.empty()) log_line(fmt::format("{}: no gold answers, so nothing is scored", arguments.data.string()));
  print(score);
  return 0;
}

}  // namespace mylos::app
