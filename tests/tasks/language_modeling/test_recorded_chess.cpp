// A Llama trained from random values on chess games, recorded from PyTorch: losses, gradient norms and the score.

#include "core/base/files/json.hpp"
#include "core/base/files/text_file.hpp"
#include "tasks/language_modeling/language_task.hpp"
#include "tests/tasks/recorded_runs.hpp"
#include "tests/tasks/step_recorder.hpp"
#include "train/engine/loop/evaluator.hpp"
#include "train/engine/loop/trainer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;

class RecordedChess : public testing::Test {
 protected:
  void SetUp() override {
    if (!recorded_.obstacle.empty()) GTEST_SKIP() << recorded_.obstacle;
  }

  Json recorded_results(const char* when) const {
    const fs::path file = recorded_.recording / "results.json";
    return parse_json(read_text_file(file), file.string())[when];
  }
  /// Returns the perplexity in a task's results.
  static double perplexity_of(const LanguageTask& task) {
    return parse_json(task.results_text(), "results")["perplexity"];
  }

  tests::RecordedRun recorded_ = tests::recorded_chess();
};

TEST_F(RecordedChess, BeginsWithTheRecordedScore) {
  LanguageTask task(FileReader(), recorded_.run, [](const std::string&) {});
  task.read_data();
  EXPECT_EQ(task.evaluation()->samples().predicted(), 28404u);
  const train::Metrics metrics = train::Evaluator(task, Precision::float32, recorded_.run.engine.gemm).evaluate();
  const Json before = recorded_results("before");
  EXPECT_NEAR(*train::find_metric(metrics, "validation_loss"), before["mean_nll"].get<double>(), 1e-5);
  EXPECT_NEAR(*train::find_metric(metrics, "accuracy"), before["accuracy"].get<double>(), 1e-9);
}

TEST_F(RecordedChess, TrainsAsRecorded) {
  LanguageTask task(FileReader(), recorded_.run, [](const std::string&) {});
  task.read_data();
  tests::StepRecorder recorder;
  train::Trainer(recorded_.run.engine, task).run({&recorder});
  ASSERT_EQ(recorder.steps.size(), 400u);
  // The noise of PyTorch's own loss is 2.4e-7 over 100 steps and 3.5e-7 over 400.
  tests::expect_recorded_steps(recorder.steps, recorded_.recording, [](std::size_t step) {
    return tests::StepBounds{step <= 100 ? 2e-6 : 1e-5, 1e-4};
  });
  const Json after = recorded_results("after"), found = parse_json(task.results_text(), "results");
  const double perplexity = after["perplexity"].get<double>();
  EXPECT_NEAR(found["perplexity"].get<double>(), perplexity, 1e-4 * perplexity);
  EXPECT_NEAR(found["accuracy"].get<double>(), after["accuracy"].get<double>(), 1e-4);
}

TEST(RecordedAdapters, TrainAsRecorded) {
  const tests::RecordedRun recorded = tests::recorded_chess_adapters();
  if (!recorded.obstacle.empty()) GTEST_SKIP() << recorded.obstacle;
  LanguageTask task(FileReader(), recorded.run, [](const std::string&) {});
  task.read_data();
  tests::StepRecorder recorder;
  train::Trainer(recorded.run.engine, task).run({&recorder});
  ASSERT_EQ(recorder.steps.size(), 100u);
  // The noise of PyTorch's own loss is 2.4e-7, and of its gradient norm 3.6e-6.
  tests::expect_recorded_steps(recorder.steps, recorded.recording, [](std::size_t) {
    return tests::StepBounds{2e-6, 2e-5};
  });
  const fs::path results = recorded.recording / "results.json";
  const Json after = parse_json(read_text_file(results), results.string())["after"];
  const Json found = parse_json(task.results_text(), "results");
  const double perplexity = after["perplexity"].get<double>();
  EXPECT_NEAR(found["perplexity"].get<double>(), perplexity, 1e-5 * perplexity);
  EXPECT_NEAR(found["accuracy"].get<double>(), after["accuracy"].get<double>(), 1e-4);
}

/// 16-bit types have the recorded losses of the warm-up, which has the same learning rates in a shorter run, and then
/// the perplexity of float within 1 %. With MYLOS_WHOLE_RUNS, the perplexity after all 400 steps is compared.
TEST_F(RecordedChess, SixteenBitsTrainLikeFloat) {
  const bool whole = std::getenv("MYLOS_WHOLE_RUNS") != nullptr;
  const auto trained_perplexity = [&](Precision precision, double bound) {
    recorded_.run.engine.precision = precision;
    LanguageTask task(FileReader(), recorded_.run, [](const std::string&) {});
    task.read_data();
    tests::StepRecorder recorder;
    train::Trainer(recorded_.run.engine, task).run({&recorder});
    EXPECT_TRUE(std::ranges::none_of(recorder.steps, &train::StepReport::skipped)) << to_string(precision);
    if (!whole) {
      SCOPED_TRACE(to_string(precision));
      tests::expect_recorded_steps(recorder.steps, recorded_.recording, [&](std::size_t) {
        return tests::StepBounds{bound, 10.0 * bound};
      });
    }
    return perplexity_of(task);
  };
  double expected = recorded_results("after")["perplexity"];
  if (!whole) {
    recorded_.run.engine.steps = *recorded_.run.engine.warmup_steps;
    expected = trained_perplexity(Precision::float32, 2e-6);
  }
  for (const auto& [precision, bound] : {std::pair{Precision::bfloat16, 2e-2}, {Precision::float16, 2e-3}}) {
    const double perplexity = trained_perplexity(precision, bound);
    EXPECT_NEAR(perplexity, expected, 0.01 * expected) << to_string(precision);
    RecordProperty(std::string(to_string(precision)), std::to_string(perplexity / expected));
  }
}

}  // namespace
}  // namespace mylos::tasks
