// Replays fine-tuning runs recorded from PyTorch, from the same weights and in the same order: all of a small run on
// examples/squad, and the first steps of MiniLM on SQuAD.

#include "core/base/files/json.hpp"
#include "core/base/files/text_file.hpp"
#include "core/kernels/products/gemm_providers.hpp"
#include "families/model_directory.hpp"
#include "tasks/question_answering/squad_task.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"
#include "tests/tasks/recorded_runs.hpp"
#include "tests/tasks/step_recorder.hpp"
#include "train/engine/loop/trainer.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;

/// Returns the directory of the model from `mylos fetch minilm`, or an empty path if it was not fetched.
fs::path minilm() {
  try {
    return families::resolve_model(FileReader(), "minilm");
  } catch (const std::exception&) {
    return {};
  }
}

/// Compares losses within `tolerance`, and gradient norms within ten times the tolerance.
void compare_steps(const std::vector<train::StepReport>& steps, const fs::path& recording, double tolerance) {
  tests::expect_recorded_steps(steps, recording, [&](std::size_t) {
    return tests::StepBounds{tolerance, 10.0 * tolerance};
  });
}

std::vector<train::StepReport> run_steps(const train::TrainConfig& config, Task& task) {
  tests::StepRecorder recorder;
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

/// The warm-up is longer than the replay, so that the schedule is the recorded one.
train::TrainConfig minilm_engine(Precision precision, std::size_t steps) {
  train::TrainConfig config;
  config.steps = steps;
  config.learning_rate = 1e-4;
  config.warmup_steps = 40;
  config.optimizer.weight_decay = 0.01;
  config.precision = precision;
  config.gemm.provider = default_gemm_provider();  // not the fastest, because measurements vary
  return config;
}

void replay_minilm(Precision precision, double tolerance, std::size_t count) {
  const fs::path reference = tests::shared_reference() / "minilm-v1.1";
  if (!fs::exists(reference)) GTEST_SKIP() << reference << " is not there (MYLOS_REFERENCE)";
  if (!fs::exists(tests::shared_data() / "squad")) GTEST_SKIP() << tests::shared_data() << " is not there (MYLOS_DATA)";
  if (minilm().empty()) GTEST_SKIP() << "MiniLM is not there: run `mylos fetch minilm`";
  SquadTask task(FileReader(), minilm_squad(reference, precision), [](const std::string&) {});
  task.read_data();
  const auto steps = run_steps(minilm_engine(precision, count), task);
  ASSERT_EQ(steps.size(), count);
  compare_steps(steps, reference, tolerance);
}

TEST(replay_of_recorded_minilm, Float) { replay_minilm(Precision::float32, 1e-5, 10); }
TEST(replay_of_recorded_minilm, Bfloat16) { replay_minilm(Precision::bfloat16, 2e-2, 4); }
/// One rounding to half's 11 bits, 2^-11.
TEST(replay_of_recorded_minilm, Half) { replay_minilm(Precision::float16, 5e-4, 4); }

/// At most `other_answers` of the 384 answers may differ from the recording, as many scores are near the null
/// threshold.
void replay_examples(Precision precision, double tolerance, std::size_t other_answers) {
  tests::RecordedRun recorded = tests::recorded_examples();
  recorded.run.engine.precision = precision;
  const auto task = recorded.task();
  const auto steps = run_steps(recorded.run.engine, *task);
  ASSERT_EQ(steps.size(), 300U);
  compare_steps(steps, recorded.recording, tolerance);

  const tests::TemporaryDirectory directory;
  task->write_results(directory.path());
  const auto read = [](const fs::path& file) { return parse_json(read_text_file(file), file.string()); };
  const Json found = read(directory / "predictions.json"), expected = read(recorded.recording / "predictions.json");
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
