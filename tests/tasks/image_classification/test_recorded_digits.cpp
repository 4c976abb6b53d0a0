// A ResNet trained from random values on handwritten digits, recorded from PyTorch. After a few steps, rounding flips a
// ReLU and even PyTorch's reruns differ, so later losses are compared with its reruns as means over windows of 50
// steps.

#include "core/base/files/json.hpp"
#include "tests/tasks/recorded_runs.hpp"
#include "tests/tasks/step_recorder.hpp"
#include "train/engine/loop/trainer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

namespace mylos::tasks {
namespace {

class RecordedDigits : public testing::Test {
 protected:
  void SetUp() override {
    if (!recorded_.obstacle.empty()) GTEST_SKIP() << recorded_.obstacle;
  }

  /// Runs all steps. Returns the fraction of test images that are classified correctly.
  double train(std::vector<double>& losses) {
    const auto task = recorded_.task();
    tests::StepRecorder recorder;
    train::Trainer(recorded_.run.engine, *task).run({&recorder});
    for (const train::StepReport& step : recorder.steps) losses.push_back(step.loss);
    const Json results = parse_json(task->results_text(), "results");
    EXPECT_EQ(results["images"], 2000);
    return results["accuracy"];
  }

  tests::RecordedRun recorded_ = tests::recorded_digits();
};

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// In 16-bit types as many digits are classified correctly.
TEST_F(RecordedDigits, TrainsAsRecorded) {
  constexpr std::size_t window = 50;
  std::vector<double> losses;
  const double right = 2000.0 * train(losses);
  const std::vector<double> expected = recorded_.losses(400);
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t step = 0; step < 2; ++step) EXPECT_NEAR(losses[step], expected[step], 1e-5 * expected[step]);
  for (std::size_t first = 0; first < losses.size(); first += window) {
    const double mean = mean_of(std::span(expected).subspan(first, window));
    const double bound = first == 0 ? 0.01 : first == window ? 0.10 : 0.25;
    EXPECT_NEAR(mean_of(std::span(losses).subspan(first, window)), mean, bound * mean) << "from step " << first + 1;
  }
  EXPECT_GE(right, 1960.0);
  EXPECT_LE(right, 1982.0);
  for (const Precision precision : {Precision::bfloat16, Precision::float16}) {
    recorded_.run.engine.precision = precision;
    EXPECT_NEAR(2000.0 * train(losses), right, 10.0) << to_string(precision);
  }
}

}  // namespace
}  // namespace mylos::tasks
