#include "app/commands.hpp"
#include "app/compute.hpp"
#include "app/model_argument.hpp"
#include "app/standard_output.hpp"
#include "core/error.hpp"
#include "data/files.hpp"
#include "train/evaluator.hpp"
#include "train/squad_task.hpp"

#include <fmt/format.h>

/// mylos eval: answers a file's questions and scores the answers.
namespace mylos::app {
namespace {

/// So that hours of prediction do not end in a directory that cannot be written.
void check_output(const std::filesystem::path& directory) {
  std::error_code unreadable;  // is told by the attempt to write
  ensure(!std::filesystem::exists(directory / "run.json", unreadable),
         fmt::format("--output {}: holds a training run, whose scores these would replace; choose another directory",
                     directory.string()));
  const data::StagedFile probe(directory / "predictions.json");
}

}  // namespace

int run_eval(const Arguments& told) {
  Arguments arguments = told;
  resolve_model_argument(arguments);
  arguments.run.squad.dev = arguments.data;
  const train::TrainConfig& engine = arguments.run.engine;
  check_output(engine.output);
  train::SquadTask task(arguments.run.squad, engine.precision, engine.seed, log_line);
  const ComputeScope compute;
  train::Evaluator(task, engine.precision, engine.gemm).evaluate();
  task.write_results(engine.output);
  const std::string& score = task.evaluation()->score();
  if (score.empty()) log_line(fmt::format("{}: no gold answers, so nothing is scored", arguments.data.string()));
  print(score);
  return 0;
}

}  // namespace mylos::app
