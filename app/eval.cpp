#include "app/commands.hpp"
#include "app/compute.hpp"
#include "app/model_argument.hpp"
#include "app/standard_output.hpp"
#include "core/error.hpp"
#include "data/files.hpp"
#include "train/evaluator.hpp"
#include "train/squad_task.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

/// mylos eval: answers a file's questions and scores the answers.
namespace mylos::app {
namespace {

namespace fs = std::filesystem;

/// The directory for results, made at once, so that hours of prediction do not end in one that cannot be written.
/// Directories that it made are gone again where nothing was written into them.
class ResultDirectory {
 public:
  explicit ResultDirectory(const fs::path& path) {
    std::error_code unreadable;  // is told by the attempt to write
    ensure(!fs::exists(path / "run.json", unreadable),
           fmt::format("--output {}: holds a training run, whose scores these would replace; choose another directory",
                       path.string()));
    for (fs::path each = fs::absolute(path); !fs::exists(each, unreadable) && each != each.root_path();
         each = each.parent_path()) {
      made_.push_back(each);
    }
    const data::StagedFile probe(path / "predictions.json");
  }
  ~ResultDirectory() {
    std::error_code ignored;  // what holds anything stays
    for (const fs::path& each : made_) fs::remove(each, ignored);
  }
  ResultDirectory(const ResultDirectory&) = delete;
  ResultDirectory& operator=(const ResultDirectory&) = delete;

 private:
  std::vector<fs::path> made_;  ///< innermost first
};

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
  resolve_model_argument(arguments);
  arguments.run.squad.dev = arguments.data;
  const train::TrainConfig& engine = arguments.run.engine;
  const ResultDirectory results(engine.output);
  train::SquadTask task(arguments.run.squad, engine.precision, engine.seed, log_line);
  const ComputeScope compute;
  check_precision(engine.precision, engine.gemm.tf32);
  train::Evaluator evaluator(task, engine.precision, engine.gemm);
  const train::Metrics metrics = evaluator.evaluate();
  task.write_results(engine.output);
  log_line(prediction_line(task.evaluation()->windows().count(), evaluator.prediction_seconds(), metrics));
  const std::string& score = task.evaluation()->official_score();
  if (score.empty()) log_line(fmt::format("{}: no gold answers, so nothing is scored", arguments.data.string()));
  print(score);
  return 0;
}

}  // namespace mylos::app
