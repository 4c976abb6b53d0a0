// Training in half precision: a loss scale that is too large skips steps and recovers, its state is restored from a
// checkpoint, and problems with other causes stop the run.

#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "tests/small_models/span_task.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/trained_weights.hpp"
#include "train/engine/loop/trainer.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace mylos::small_models {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::trained_weights;
using train::LossScale;

/// Starts with a later step's batch, and weights its samples as a test requires.
class ShiftedTask final : public SpanTask {
 public:
  explicit ShiftedTask(std::size_t shift, double weight_of_all = 0.0)
      : SpanTask(even_spans(Precision::float16)), shift_(shift), weight_(weight_of_all) {}
  std::vector<std::size_t> global_batch(std::size_t step) const override {
    return SpanTask::global_batch(step + shift_);
  }
  double weight(std::span<const std::size_t> samples) const override {
    return weight_ == 0.0 ? SpanTask::weight(samples) : weight_;
  }

 private:
  std::size_t shift_;
  double weight_;
};

/// Records the reports of a run, and performs an action after one of its steps.
class HalfLog final : public train::Reporter {
 public:
  void step(const train::StepReport& report) override {
    steps.push_back(report);
    losses.push_back(report.loss);
    if (report.step == at) action();
  }
  std::vector<double> scales() const {
    std::vector<double> scales;
    for (const train::StepReport& report : steps) scales.push_back(report.loss_scale.value_or(0.0));
    return scales;
  }
  std::size_t first_update() const {
    return static_cast<std::size_t>(std::ranges::find(steps, false, &train::StepReport::skipped) - steps.begin());
  }
  std::size_t skipped() const {
    return static_cast<std::size_t>(std::ranges::count(steps, true, &train::StepReport::skipped));
  }

  std::size_t at = 0;
  std::function<void()> action;
  std::vector<train::StepReport> steps;
  std::vector<double> losses;
};

constexpr double too_large = LossScale::largest;

/// Returns a configuration in which the warm-up counts updates, not steps.
train::TrainConfig training(double loss_scale) {
  train::TrainConfig config;
  config.steps = 24;
  config.learning_rate = 1e-3;
  config.schedule = nn::ScheduleKind::constant;
  config.warmup_steps = 8;
  config.precision = Precision::float16;
  config.initial_loss_scale = loss_scale;
  config.gemm.provider = default_gemm_provider();
  return config;
}

TEST(Half, TheFirstStepsWithTooLargeALossScaleAreSkippedAsIfTheyHadNotBeen) {
  ShiftedTask task(0);
  const train::TrainConfig config = training(too_large);
  train::Trainer trainer(config, task);
  const std::vector<float> start = trained_weights(task, trainer);
  HalfLog log;
  const train::RunResult result = trainer.run({&log});
  const std::size_t first = log.first_update();
  ASSERT_GT(first, 0u);
  ASSERT_LT(first, 12u);
  EXPECT_EQ(result.steps, config.steps);
  EXPECT_EQ(result.skipped, log.skipped());
  for (std::size_t i = 0; i < log.steps.size(); ++i) {
    EXPECT_EQ(log.steps[i].skipped, !std::isfinite(log.steps[i].gradient_norm)) << i;
    EXPECT_TRUE(std::isfinite(log.steps[i].loss)) << i;
    const double next = i + 1 < log.steps.size() ? log.scales()[i + 1] : trainer.loss_scale().value();
    EXPECT_EQ(next, log.scales()[i] * (log.steps[i].skipped ? 0.5 : 1.0)) << i;
  }
  // A run with the final scale on the batches from there on makes the same updates with the same learning rates.
  ShiftedTask later(first);
  train::TrainConfig rest = training(log.scales()[first]);
  rest.steps = config.steps - first;
  train::Trainer other(rest, later);
  HalfLog log_of_rest;
  other.run({&log_of_rest});
  ASSERT_EQ(log_of_rest.steps.size(), rest.steps);
  for (std::size_t i = 0; i < rest.steps; ++i) {
    const train::StepReport &ours = log.steps[first + i], &expected = log_of_rest.steps[i];
    EXPECT_EQ(ours.loss, expected.loss) << i;
    EXPECT_EQ(ours.skipped, expected.skipped) << i;
    EXPECT_TRUE(ours.skipped || ours.gradient_norm == expected.gradient_norm) << i;
    EXPECT_EQ(ours.learning_rate, expected.learning_rate) << i;
  }
  EXPECT_EQ(trained_weights(task, trainer), trained_weights(later, other));
  EXPECT_NE(trained_weights(task, trainer), start);
}

TEST(Half, GradientsAndLossesDoNotDependOnTheLossScale) {
  // Powers of two cause no rounding, except of subnormal numbers in half.
  const auto run = [](double scale) {
    ShiftedTask task(0);
    HalfLog log;
    train::Trainer(training(scale), task).run({&log});
    EXPECT_EQ(log.skipped(), 0u);
    return log.losses;
  };
  const std::vector<double> one = run(0x1p10), other = run(0x1p13);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], other[i], 1e-3 * one[i]) << i;
}

/// Losses in half agree with float within half's rounding, 2^-11, times the number of roundings; bfloat16's rounding is
/// 2^-8.
TEST(Half, LossesStayNearThoseOfFloat) {
  SpanTask task(even_spans(Precision::float32));
  train::TrainConfig config = training(1024.0);
  config.precision = Precision::float32;
  HalfLog exact;
  train::Trainer(config, task).run({&exact});
  EXPECT_EQ(exact.steps.front().loss_scale, std::nullopt);
  for (const auto recompute : {nn::Recompute::none, nn::Recompute::layer}) {
    for (const std::size_t micro_batch : {std::size_t{0}, std::size_t{2}}) {
      ShiftedTask half(0);
      train::TrainConfig in_half = training(1024.0);
      in_half.recompute = recompute;
      in_half.micro_batch = micro_batch;
      HalfLog log;
      train::Trainer(in_half, half).run({&log});
      for (std::size_t i = 0; i < log.losses.size(); ++i) {
        EXPECT_NEAR(log.losses[i], exact.losses[i], 2.5e-3 * exact.losses[i]) << i;
      }
    }
  }
}

TEST(Half, AGradientThatIsNotFiniteWithTheLeastLossScaleStopsTheRun) {
  ShiftedTask task(0, 1e-9);  // the loss is finite, but its gradient exceeds 65504 with any scale
  train::Trainer trainer(training(8.0), task);
  HalfLog log;
  const std::string error = tests::error_of([&] { trainer.run({&log}); });
  EXPECT_THAT(error, AllOf(HasSubstr("step 4: loss "), HasSubstr(" with loss scale 1, the smallest: the run stops; "),
                           HasSubstr("`precision` bfloat16 or float")));
  EXPECT_EQ(log.scales(), (std::vector<double>{8.0, 4.0, 2.0}));
  EXPECT_EQ(log.skipped(), 3u);
}

TEST(Half, ALossThatIsNotFiniteStopsTheRunAtOnce) {
  ShiftedTask task(0, std::nan(""));
  train::Trainer trainer(training(65536.0), task);
  HalfLog log;
  const std::string error = tests::error_of([&] { trainer.run({&log}); });
  EXPECT_THAT(error, AllOf(HasSubstr("step 1: loss nan"), Not(HasSubstr("loss scale")),
                           HasSubstr("the run stops; no update was made yet: the weights are damaged, or too large for "
                                     "`precision half`; use `precision` bfloat16 or float")));
  EXPECT_TRUE(log.steps.empty());
}

class HalfResume : public ::testing::Test {
 protected:
  void SetUp() override {}

  /// Runs with a checkpoint after each step.
  HalfLog whole_run() {
    ShiftedTask task(0);
    train::TrainConfig config = training(too_large);
    config.output = directory_ / "run";
    config.checkpoints.every_steps = 1;
    config.checkpoints.keep = config.steps;
    HalfLog log;
    train::Trainer trainer(config, task);
    trainer.run({&log});
    weights_ = trained_weights(task, trainer);
    return log;
  }
  std::filesystem::path checkpoint(std::size_t step) const {
    return directory_ / "run" / parallel::checkpoints_name / parallel::checkpoint_file_name(step);
  }

  tests::TemporaryDirectory directory_;
  std::vector<float> weights_;
};

TEST_F(HalfResume, GoesOnBitForBitWithItsLossScale) {
  const HalfLog whole = whole_run();
  const std::size_t first = whole.first_update();
  ASSERT_GT(first, 2u);
  for (const std::size_t step : {first / 2, first + 1, std::size_t{20}}) {
    SCOPED_TRACE(fmt::format("after step {}; the first update was in {}", step, first + 1));
    ShiftedTask task(0);
    train::TrainConfig config = training(too_large);
    config.checkpoints.resume = checkpoint(step);
    train::Trainer trainer(config, task);
    EXPECT_EQ(trainer.loss_scale().value(), whole.scales()[step]);
    std::size_t finite = 0;
    while (finite < step && !whole.steps[step - 1 - finite].skipped) ++finite;
    EXPECT_EQ(trainer.loss_scale().finite_steps(), finite);
    HalfLog log;
    const train::RunResult result = trainer.run({&log});
    EXPECT_EQ(result.skipped, whole.skipped());
    for (std::size_t i = 0; i < log.steps.size(); ++i) {
      EXPECT_EQ(log.losses[i], whole.losses[step + i]) << i;
      EXPECT_EQ(log.steps[i].learning_rate, whole.steps[step + i].learning_rate) << i;
      EXPECT_EQ(log.scales()[i], whole.scales()[step + i]) << i;
    }
    EXPECT_EQ(log.steps.size(), whole.steps.size() - step);
    EXPECT_EQ(trained_weights(task, trainer), weights_);
  }
}

TEST_F(HalfResume, AnotherPrecisionKeepsTheScheduleAndBeginsANewScale) {
  const HalfLog whole = whole_run();
  const std::size_t step = 15;
  SpanTask exact(even_spans(Precision::float32));
  train::TrainConfig config = training(too_large);
  config.precision = Precision::float32;
  config.output = directory_ / "float";
  config.checkpoints = {.every_steps = 1, .keep = 30, .resume = checkpoint(step)};
  HalfLog in_float;
  train::Trainer(config, exact).run({&in_float});
  ASSERT_FALSE(std::ranges::any_of(whole.steps.begin() + step, whole.steps.end(), &train::StepReport::skipped));
  for (std::size_t i = 0; i < in_float.losses.size(); ++i) {
    EXPECT_NEAR(in_float.losses[i], whole.losses[step + i], 2.5e-3 * whole.losses[step + i]) << i;
    EXPECT_EQ(in_float.steps[i].learning_rate, whole.steps[step + i].learning_rate) << "follows updates";
  }
  ShiftedTask task(0);
  train::TrainConfig half = training(512.0);
  half.checkpoints.resume = config.output / parallel::checkpoints_name / parallel::checkpoint_file_name(step + 2);
  const train::Trainer again(half, task);
  EXPECT_EQ(again.loss_scale().value(), 512.0);
  EXPECT_EQ(again.loss_scale().finite_steps(), 0u);
}

}  // namespace
}  // namespace mylos::small_models
