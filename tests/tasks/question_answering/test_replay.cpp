// Fine-tuning runs recorded from PyTorch, from the same weights and in the same order: the whole of a small one on
// examples/squad, and the first steps of MiniLM on SQuAD.

#include "core/base/json.hpp"
#include "core/base/text_file.hpp"
#include "core/kernels/gemm.hpp"
#include "data/huggingface/model_names.hpp"
#include "tasks/question_answering/squad_task.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"
#include "train/engine/trainer.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;

class StepRecorder final : public train::Reporter {
 public:
  void step(const train::StepReport& report) override { steps.push_back(report); }
  std::vector<train::StepReport> steps;
};

/// Where the model is that `mylos fetch minilm` brings; empty where it was not fetched.
fs::path minilm() {
  try {
    return data::resolve_model("minilm");
  } catch (const std::exception&) {
    return {};
  }
}

/// Compares losses within `tolerance`, and gradient norms within ten times as much, with the first steps of a
/// recording.
void compare_steps(const std::vector<train::StepReport>& steps, const fs::path& recording, double tolerance) {
  const std::string recorded = read_text_file(recording);
  const auto lines = split_lines(recorded);
  ASSERT_LE(steps.size(), lines.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Json expected = parse_json(lines[i], "steps.jsonl");
    SCOPED_TRACE("step " + std::to_string(i + 1));
    EXPECT_EQ(steps[i].tokens, expected["tokens"].get<std::size_t>());
    EXPECT_DOUBLE_EQ(steps[i].learning_rate, expected["learning_rate"].get<double>());
    EXPECT_NEAR(steps[i].loss, expected["loss"].get<double>(), tolerance * expected["loss"].get<double>());
    EXPECT_NEAR(steps[i].gradient_norm, expected["gradient_norm"].get<double>(),
                10.0 * tolerance * expected["gradient_norm"].get<double>());
  }
}

std::vector<train::StepReport> run_steps(const train::TrainConfig& config, SquadTask& task) {
  StepRecorder recorder;
  train::Trainer(config, task).run({&recorder});
  return recorder.steps;
}

RunConfig minilm_squad(const fs::path& reference, Precision precision) {
  RunConfig run;
  run.engine.precision = precision;
  run.task.model = minilm();
  run.task.train = tests::shared_data() / "squad/v1.1/train.json";
  run.task.batch = 8;
  run.task.dropout = 0.0;
  SquadConfig config;
  config.head = reference / "qa_head.safetensors";
  config.order = reference / "order.jsonl";
  run.settings = config;
  return run;
}

train::TrainConfig recorded_engine(Precision precision, std::size_t steps, double learning_rate,
                                   std::size_t warmup_steps) {
  train::TrainConfig config;
  config.steps = steps;
  config.learning_rate = learning_rate;
  config.warmup_steps = warmup_steps;
  config.optimizer.adamw.weight_decay = 0.01;
  config.precision = precision;
  config.gemm.provider = default_gemm_provider();  // not the fastest by a measurement, which may differ each time
  return config;
}

void replay_minilm(Precision precision, double tolerance) {
  const fs::path reference = tests::shared_reference() / "minilm-v1.1";
  if (!fs::exists(reference)) GTEST_SKIP() << reference << " is not there (MYLOS_REFERENCE)";
  if (!fs::exists(tests::shared_data() / "squad")) GTEST_SKIP() << tests::shared_data() << " is not there (MYLOS_DATA)";
  if (minilm().empty()) GTEST_SKIP() << "MiniLM is not there: run `mylos fetch minilm`";
  SquadTask task(minilm_squad(reference, precision), [](const std::string&) {});
  // The warm-up is longer than what is replayed, so that the schedule is the recorded one.
  const auto steps = run_steps(recorded_engine(precision, 20, 1e-4, 40), task);
  ASSERT_EQ(steps.size(), 20U);
  compare_steps(steps, reference / "steps.jsonl", tolerance);
}

TEST(replay_of_recorded_minilm, Float) { replay_minilm(Precision::float32, 1e-5); }
TEST(replay_of_recorded_minilm, Bfloat16) { replay_minilm(Precision::bfloat16, 2e-2); }
/// One rounding to half's 11 bits, 2^-11.
TEST(replay_of_recorded_minilm, Half) { replay_minilm(Precision::float16, 5e-4); }

/// The settings of scripts/record/examples_run.py.
RunConfig examples_squad(const fs::path& recorded, Precision precision) {
  RunConfig run;
  run.engine.precision = precision;
  run.task.model = recorded;
  run.task.train = tests::source_dir() / "examples/squad/train.json";
  run.task.dev = tests::source_dir() / "examples/squad/dev.json";
  run.task.batch = 8;
  SquadConfig config;
  config.order = recorded / "order.jsonl";
  config.max_length = 128;
  config.doc_stride = 32;
  config.null_threshold = 6.0;
  run.settings = config;
  return run;
}

/// Allows `other_answers` of the 384 answers to differ from the recording: many scores lie near the null threshold.
void replay_examples(Precision precision, double tolerance, std::size_t other_answers) {
  const fs::path recorded = tests::golden_data() / "reference/examples_run";
  SquadTask task(examples_squad(recorded, precision), [](const std::string&) {});
  const auto steps = run_steps(recorded_engine(precision, 300, 2e-3, 30), task);
  ASSERT_EQ(steps.size(), 300U);
  compare_steps(steps, recorded / "steps.jsonl", tolerance);

  const tests::TemporaryDirectory directory;
  task.write_results(directory.path());
  const auto read = [](const fs::path& file) { return parse_json(read_text_file(file), file.string()); };
  const Json found = read(directory / "predictions.json"), expected = read(recorded / "predictions.json");
  ASSERT_EQ(found.size(), expected.size());
  std::size_t others = 0;
  for (const auto& [id, text] : expected.items()) others += found.at(id) == text ? 0 : 1;
  EXPECT_LE(others, other_answers);
}

TEST(replay_of_recorded_examples, Float) { replay_examples(Precision::float32, 1e-5, 0); }
TEST(replay_of_recorded_examples, Bfloat16) { replay_examples(Precision::bfloat16, 2e-2, 19); }
TEST(replay_of_recorded_examples, Half) { replay_examples(Precision::float16, 2e-3, 8); }

}  // namespace
}  // namespace mylos::tasks
