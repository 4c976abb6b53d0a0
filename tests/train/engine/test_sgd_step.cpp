#include "core/kernels/products/gemm_provider.hpp"
#include "tests/small_models/span_task.hpp"
#include "tests/support/trained_weights.hpp"
#include "train/engine/loop/trainer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

/// A step of SGD without momentum changes weights by -learning rate * gradient. Unlike Adam's, it reveals the scale of
/// the gradient, and so whether it was clipped and divided by the loss scale.
namespace mylos::small_models {
namespace {

using tests::trained_weights;

constexpr double rate = 0.5;

class NormLog final : public train::Reporter {
 public:
  void step(const train::StepReport& report) override {
    norm = report.gradient_norm;
    skipped = report.skipped;
  }
  double norm = 0.0;
  bool skipped = false;
};

struct Step {
  std::vector<double> change;  ///< per weight
  double norm = 0.0;           ///< norm of the gradient before clipping, as reported

  double length() const {
    double sum = 0.0;
    for (const double x : change) sum += x * x;
    return std::sqrt(sum);
  }
};

Step step_of(Precision precision, double clip, double loss_scale = 0.0) {
  SpanTask task(even_spans(precision));
  train::TrainConfig config;
  config.steps = 1;
  config.learning_rate = rate;
  config.schedule = nn::ScheduleKind::constant;
  config.optimizer = {.name = "sgd", .settings = {{"momentum", 0.0}}};
  config.clip = clip;
  config.precision = precision;
  config.gemm.provider = gemm_providers().front();
  if (loss_scale > 0.0) config.initial_loss_scale = loss_scale;
  train::Trainer trainer(config, task);
  const std::vector<float> before = trained_weights(task, trainer);
  NormLog log;
  trainer.run({&log});
  EXPECT_FALSE(log.skipped) << "loss scale " << loss_scale;
  const std::vector<float> after = trained_weights(task, trainer);
  Step step{.change = std::vector<double>(before.size()), .norm = log.norm};
  for (std::size_t i = 0; i < before.size(); ++i) step.change[i] = static_cast<double>(after[i]) - before[i];
  return step;
}

/// Expects that `step` is `factor` times `whole`, within `tolerance` relative to its norm.
void expect_multiple(const Step& step, const Step& whole, double factor, double tolerance) {
  ASSERT_EQ(step.change.size(), whole.change.size());
  Step difference = step;
  for (std::size_t i = 0; i < step.change.size(); ++i) difference.change[i] -= factor * whole.change[i];
  EXPECT_LE(difference.length(), tolerance * factor * whole.length());
}

TEST(SgdStep, IsTheGradientTimesTheRate) {
  const Step step = step_of(Precision::float32, 0.0);
  EXPECT_GT(step.norm, 0.1);
  EXPECT_NEAR(step.length() / (rate * step.norm), 1.0, 1e-5);
}

TEST(SgdStep, IsClippedToTheNorm) {
  const Step whole = step_of(Precision::float32, 0.0);
  const double clip = 0.25 * whole.norm;
  const Step clipped = step_of(Precision::float32, clip);
  EXPECT_EQ(clipped.norm, whole.norm) << "reported before it is clipped";
  EXPECT_NEAR(clipped.length() / (rate * clip), 1.0, 1e-4);
  expect_multiple(clipped, whole, clip / whole.norm, 1e-4);
  expect_multiple(step_of(Precision::float32, 4.0 * whole.norm), whole, 1.0, 1e-9);
}

TEST(SgdStep, HasNoLossScaleInIt) {
  const Step whole = step_of(Precision::float32, 0.0);
  const double clip = 0.25 * whole.norm;
  for (const double scale : {64.0, 4096.0}) {
    const Step half = step_of(Precision::float16, 0.0, scale);
    EXPECT_NEAR(half.norm / whole.norm, 1.0, 0.02) << scale;
    EXPECT_NEAR(half.length() / (rate * half.norm), 1.0, 1e-4) << scale;
    expect_multiple(half, whole, 1.0, 0.05);
    expect_multiple(step_of(Precision::float16, clip, scale), half, clip / half.norm, 1e-3);
  }
}

}  // namespace
}  // namespace mylos::small_models
