#include "app/options/commands.hpp"
#include "app/options/config_file.hpp"
#include "app/program/build_info.hpp"
#include "app/program/compute.hpp"
#include "app/program/model_argument.hpp"
#include "app/run_commands.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/standard_output.hpp"
#include "tasks/interface/attention_choice.hpp"
#include "train/engine/loop/evaluator.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

/// mylos eval: predicts the samples of a file and scores the predictions.
namespace mylos::app {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

/// The file with eval's options and the program, in every directory that eval wrote to. Its presence allows eval to
/// replace its own results.
constexpr const char* record_file = "evaluation.json";

constexpr std::array written_names = {
    record_file, "predictions.json", "predictions.jsonl", "nbest_predictions.json", "null_odds.json", "results.json"};

bool is_evaluation(const fs::path& path) {
  std::error_code unreadable;  // then it is not an evaluation
  const fs::path file = path / record_file;
  if (!fs::is_regular_file(file, unreadable)) return false;
  const OrderedJson record = try_parse_ordered_json(read_text(file));
  return record.is_object() && record.contains(program_key) && record[program_key].is_object();
}

void refuse_foreign_results(const fs::path& path) {
  if (is_evaluation(path)) return;
  for (const char* name : written_names) {
    std::error_code unreadable;  // reported by the code that writes there
    if (!fs::exists(path / name, unreadable) || fs::is_empty(path / name, unreadable)) continue;
    fail(
        fmt::format("--output {}: contains {}, but no {} of mylos eval; choose another directory, or replace it with "
                    "--overwrite",
                    path.string(), name, record_file));
  }
}

/// The output directory. Creates it on construction, so that a directory that cannot be written is reported before
/// hours of prediction. Directories that it created are removed again if nothing was written to them.
class EvaluationDirectory {
 public:
  /// Errors: std::runtime_error with one line if the directory cannot be written, holds a training run, or, without
  /// `overwrite`, holds results of another program.
  EvaluationDirectory(const fs::path& path, bool overwrite) : path_(path) {
    std::error_code unreadable;  // reported by the attempt to write
    ensure(!fs::exists(path / "run.json", unreadable),
           fmt::format("--output {}: contains a training run, whose scores would be replaced; choose another directory",
                       path.string()));
    if (!overwrite) refuse_foreign_results(path);
    for (fs::path each = fs::absolute(path); !fs::exists(each, unreadable) && each != each.root_path();
         each = each.parent_path()) {
      made_.push_back(each);
    }
    const StagedFile probe(path / "predictions.json");
  }
  ~EvaluationDirectory() {
    std::error_code ignored;  // a directory that is not empty stays
    for (const fs::path& each : made_) fs::remove(each, ignored);
  }
  EvaluationDirectory(const EvaluationDirectory&) = delete;
  EvaluationDirectory& operator=(const EvaluationDirectory&) = delete;

  /// Writes the record, a JSON object. Call it before writing results, so that results of a killed process are
  /// recognized as eval's own.
  void begin(const OrderedJson& record) const {
    write_text(path_ / record_file, record.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
  }

 private:
  fs::path path_;
  std::vector<fs::path> made_;  ///< innermost first
};

/// Describes how the results were made: eval's options and the program.
OrderedJson record_of(const Arguments& arguments) {
  OrderedJson record = settings_json(*find_command("eval"), arguments);
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
  const std::filesystem::path& adapter = arguments.run.task.adapters.directory;
  const EvaluationDirectory results(engine.output, arguments.overwrite);
  const ComputeScope compute;  // before the task, whose model depends on the device
  const std::unique_ptr<tasks::Task> task = make_with_data(*arguments.task, arguments.run, log_line);
  check_precision(engine.precision, engine.gemm.tf32);
  choose_attention(*parallel::make_self_communicator(), arguments.run, *task, log_line);
  train::Evaluator evaluator(*task, engine.precision, engine.gemm);
  const train::Metrics metrics = evaluator.evaluate();
  const double* loss = train::find_metric(metrics, "validation_loss");
  ensure(loss == nullptr || std::isfinite(*loss),
         fmt::format("{}{}: the model's outputs are not finite: its weights are damaged, its training diverged, or "
                     "--precision {} cannot hold them",
                     arguments.model, adapter.empty() ? "" : " with " + adapter.string(), to_string(engine.precision)));
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
