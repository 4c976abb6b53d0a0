#include "tests/tasks/recorded_runs.hpp"

#include "core/base/files/json.hpp"
#include "core/base/files/text_file.hpp"
#include "core/kernels/products/gemm_providers.hpp"
#include "tasks/image_classification/image_classification_kind.hpp"
#include "tasks/image_classification/image_config.hpp"
#include "tasks/interface/task.hpp"
#include "tasks/language_modeling/language_config.hpp"
#include "tasks/language_modeling/language_modeling_kind.hpp"
#include "tasks/question_answering/question_answering_kind.hpp"
#include "tasks/question_answering/squad_config.hpp"
#include "tests/support/paths.hpp"

#include <gtest/gtest.h>

namespace mylos::tests {
namespace {

namespace fs = std::filesystem;

tasks::RunConfig run_on(const fs::path& model, const fs::path& train, const fs::path& dev) {
  tasks::RunConfig run;
  run.task.model = model;
  run.task.train = train;
  run.task.dev = dev;
  run.task.batch = 8;
  run.engine.gemm.provider = default_gemm_provider();  // not the fastest, because measurements vary
  return run;
}

/// Records what is missing here to repeat a recorded run.
void note_obstacle(RecordedRun& recorded, const fs::path& data) {
  if (!fs::exists(recorded.recording))
    recorded.obstacle = recorded.recording.string() + " is not there (MYLOS_REFERENCE)";
  if (!fs::exists(data)) recorded.obstacle = data.string() + " is not there (MYLOS_DATA)";
}

}  // namespace

std::unique_ptr<tasks::Task> RecordedRun::task() const {
  return make_with_data(kind, run, [](const std::string&) {});
}

std::vector<double> RecordedRun::losses(std::size_t steps) const {
  const std::string recorded = read_text_file(recording / "steps.jsonl");
  std::vector<double> losses;
  for (const auto line : split_lines(recorded)) {
    if (losses.size() == steps) break;
    losses.push_back(parse_json(line, "steps.jsonl")["loss"].get<double>());
  }
  return losses;
}

RecordedRun recorded_examples() {
  const fs::path recorded = golden_data() / "reference/examples_run", data = source_dir() / "examples/squad";
  tasks::RunConfig run = run_on(recorded, data / "train.json", data / "dev.json");
  tasks::SquadConfig config;
  config.order = recorded / "order.jsonl";
  config.max_length = 128;
  config.doc_stride = 32;
  config.null_threshold = 6.0;
  run.settings = config;
  run.engine.steps = 300;
  run.engine.warmup_steps = 30;
  run.engine.learning_rate = 2e-3;
  run.engine.optimizer.weight_decay = 0.01;
  return {"bert", tasks::question_answering(), run, recorded};
}

RecordedRun recorded_chess() {
  const fs::path recorded = shared_reference() / "llama/chess", games = shared_data() / "chess";
  tasks::RunConfig run = run_on(recorded, games / "games-train.jsonl", games / "games-dev.jsonl");
  tasks::LanguageConfig config;
  config.max_length = 256;
  config.long_documents = data::LongDocuments::truncate;
  config.order = recorded / "order.jsonl";
  run.settings = config;
  run.engine.steps = 400;
  run.engine.warmup_steps = 40;
  run.engine.learning_rate = 1e-3;
  run.engine.optimizer = {.weight_decay = 0.1, .settings = {{"adam-beta2", 0.95}}};
  RecordedRun chess{"llama", tasks::language_modeling(), run, recorded};
  note_obstacle(chess, games);
  return chess;
}

RecordedRun recorded_chess_adapters() {
  RecordedRun chess = recorded_chess();
  chess.name = "adapters";
  chess.recording = shared_reference() / "runs/llama-lora-chess";
  chess.run.task.adapters.directory = chess.recording / "adapter";
  tasks::LanguageConfig config = tasks::settings_of<tasks::LanguageConfig>(chess.run);
  config.order = chess.recording / "order.jsonl";
  chess.run.settings = config;
  chess.run.engine.steps = 100;
  chess.run.engine.warmup_steps = 10;
  chess.run.engine.learning_rate = 3e-3;
  note_obstacle(chess, chess.run.task.train);
  return chess;
}

RecordedRun recorded_digits() {
  const fs::path recorded = shared_reference() / "resnet/digits", digits = shared_data() / "mnist";
  tasks::RunConfig run = run_on(recorded, digits, digits);
  tasks::ImageConfig config;
  config.mean = {0.1307f};
  config.deviation = {0.3081f};
  config.batch_norm_group = 64;
  config.order = recorded / "order.jsonl";
  run.settings = config;
  run.task.batch = 64;
  run.engine.steps = 400;
  run.engine.learning_rate = 0.05;
  run.engine.clip = 0.0;
  run.engine.optimizer = {.name = "sgd", .weight_decay = 5e-4};
  RecordedRun found{"resnet", tasks::image_classification(), run, recorded};
  note_obstacle(found, digits);
  return found;
}

void expect_recorded_steps(const std::vector<train::StepReport>& steps, const fs::path& recording,
                           const std::function<StepBounds(std::size_t)>& bounds) {
  const std::string recorded = read_text_file(recording / "steps.jsonl");
  const auto lines = split_lines(recorded);
  ASSERT_LE(steps.size(), lines.size());
  for (const train::StepReport& step : steps) {
    const Json expected = parse_json(lines[step.step - 1], "steps.jsonl");
    SCOPED_TRACE("step " + std::to_string(step.step));
    const double loss = expected["loss"].get<double>(), norm = expected["gradient_norm"].get<double>();
    const StepBounds bound = bounds(step.step);
    EXPECT_EQ(step.tokens, expected["tokens"].get<std::size_t>());
    EXPECT_NEAR(step.learning_rate, expected["learning_rate"].get<double>(), 1e-12);
    EXPECT_NEAR(step.loss, loss, bound.loss * loss);
    EXPECT_NEAR(step.gradient_norm, norm, bound.gradient_norm * norm);
  }
}

}  // namespace mylos::tests
