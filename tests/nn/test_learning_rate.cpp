#include "nn/learning_rate.hpp"

#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <numbers>
#include <string>
#include <vector>

namespace mylos::nn {
namespace {

using ::testing::HasSubstr;

TEST(LearningRate, LinearFallsToZero) {
  const LearningRateSchedule schedule{ScheduleKind::linear, 1e-3, 10, 0};
  EXPECT_DOUBLE_EQ(schedule.at(0), 1e-3);
  EXPECT_DOUBLE_EQ(schedule.at(1), 0.9e-3);
  EXPECT_DOUBLE_EQ(schedule.at(9), 0.1e-3);
  EXPECT_EQ(schedule.at(10), 0.0);
  EXPECT_EQ(schedule.at(11), 0.0);
}

TEST(LearningRate, WarmUpRisesFromZero) {
  for (const ScheduleKind kind : {ScheduleKind::linear, ScheduleKind::constant, ScheduleKind::cosine}) {
    const LearningRateSchedule schedule{kind, 2.0, 20, 4};
    EXPECT_EQ(schedule.at(0), 0.0) << to_string(kind);
    EXPECT_DOUBLE_EQ(schedule.at(1), 0.5) << to_string(kind);
    EXPECT_DOUBLE_EQ(schedule.at(3), 1.5) << to_string(kind);
    EXPECT_DOUBLE_EQ(schedule.at(4), 2.0) << to_string(kind);
  }
  const LearningRateSchedule linear{ScheduleKind::linear, 2.0, 20, 4};
  EXPECT_DOUBLE_EQ(linear.at(12), 1.0);
}

TEST(LearningRate, CosineIsHalfAPeriod) {
  const LearningRateSchedule schedule{ScheduleKind::cosine, 1.0, 12, 2};
  EXPECT_DOUBLE_EQ(schedule.at(2), 1.0);
  EXPECT_NEAR(schedule.at(7), 0.5, 1e-12);
  EXPECT_NEAR(schedule.at(11), 0.5 * (1.0 + std::cos(0.9 * std::numbers::pi)), 1e-12);
  EXPECT_EQ(schedule.at(12), 0.0);
}

TEST(LearningRate, ConstantStays) {
  const LearningRateSchedule schedule{ScheduleKind::constant, 0.25, 10, 0};
  for (const std::size_t step : {0u, 5u, 9u, 10u, 1000u}) EXPECT_EQ(schedule.at(step), 0.25);
}

TEST(LearningRate, ARunThatIsAllWarmUpEndsAtZero) {
  const LearningRateSchedule schedule{ScheduleKind::linear, 1.0, 5, 5};
  EXPECT_DOUBLE_EQ(schedule.at(4), 0.8);
  EXPECT_EQ(schedule.at(5), 0.0);
}

TEST(LearningRate, LinearAndCosineEndAtTheMinimum) {
  LearningRateSchedule schedule{.kind = ScheduleKind::linear, .peak = 1.0, .steps = 10, .minimum = 0.5};
  EXPECT_EQ(schedule.at(0), 1.0);
  EXPECT_EQ(schedule.at(5), 0.75);
  EXPECT_EQ(schedule.at(9), 0.55);
  for (const std::size_t step : {10u, 11u}) EXPECT_EQ(schedule.at(step), 0.5);
  schedule.kind = ScheduleKind::cosine;
  EXPECT_EQ(schedule.at(0), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(5), 0.75);
  EXPECT_NEAR(schedule.at(9), 0.5 + 0.25 * (1.0 + std::cos(0.9 * std::numbers::pi)), 1e-15);
  for (const std::size_t step : {10u, 11u}) EXPECT_EQ(schedule.at(step), 0.5);
}

TEST(LearningRate, WarmUpRisesFromZeroBelowTheMinimum) {
  const LearningRateSchedule schedule{
      .kind = ScheduleKind::linear, .peak = 1.0, .steps = 12, .warmup_steps = 4, .minimum = 0.5};
  EXPECT_EQ(schedule.at(0), 0.0);
  EXPECT_EQ(schedule.at(1), 0.25);
  EXPECT_EQ(schedule.at(4), 1.0);
  EXPECT_EQ(schedule.at(8), 0.75);
}

TEST(LearningRate, ConstantIgnoresTheMinimumAndDecaySteps) {
  const LearningRateSchedule schedule{
      .kind = ScheduleKind::constant, .peak = 0.25, .steps = 10, .minimum = 0.125, .decay_steps = {2}};
  for (const std::size_t step : {0u, 2u, 10u}) EXPECT_EQ(schedule.at(step), 0.25);
}

TEST(LearningRate, StepIsMultipliedAtEachDecayStep) {
  LearningRateSchedule schedule{.kind = ScheduleKind::step,
                                .peak = 1.0,
                                .steps = 10,
                                .warmup_steps = 2,
                                .decay_steps = {3, 6, 8},
                                .decay_factor = 0.5};
  const double expected[] = {0.0, 0.5, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.125};
  for (std::size_t step = 0; step < std::size(expected); ++step) EXPECT_EQ(schedule.at(step), expected[step]) << step;
  schedule.minimum = 0.2;
  EXPECT_EQ(schedule.at(6), 0.25);
  EXPECT_EQ(schedule.at(8), 0.2);
}

TEST(LearningRate, StepDecaysByATenthByDefault) {
  const LearningRateSchedule schedule{.kind = ScheduleKind::step, .peak = 0.1, .decay_steps = {1}};
  EXPECT_EQ(schedule.at(0), 0.1);
  EXPECT_EQ(schedule.at(1), 0.1 * 0.1);
}

TEST(LearningRate, IsThatOfTransformers) {
  std::ifstream lines(tests::golden_data() / "learning_rates.jsonl");
  std::size_t read = 0;
  for (std::string line; std::getline(lines, line); ++read) {
    const nlohmann::json recorded = nlohmann::json::parse(line);
    const LearningRateSchedule schedule{.kind = parse_schedule(recorded["schedule"].get<std::string>()),
                                        .peak = recorded["peak"],
                                        .steps = recorded["steps"],
                                        .warmup_steps = recorded["warmup"],
                                        .decay_fraction = recorded["setting"],
                                        .decay_power = recorded["setting"]};
    const std::vector<double> rates = recorded["rates"];
    for (std::size_t step = 0; step < rates.size(); ++step) {
      EXPECT_NEAR(schedule.at(step), rates[step], 1e-15) << line << "\nstep " << step;
    }
  }
  EXPECT_EQ(read, 8u);
}

TEST(LearningRate, PolynomialEndsAtTheMinimum) {
  LearningRateSchedule schedule{
      .kind = ScheduleKind::polynomial, .peak = 1.0, .steps = 10, .minimum = 0.5, .decay_power = 2.0};
  EXPECT_EQ(schedule.at(0), 1.0);
  EXPECT_EQ(schedule.at(5), 0.625);
  for (const std::size_t step : {10u, 11u}) EXPECT_EQ(schedule.at(step), 0.5);
  schedule.minimum = 0.0;
  EXPECT_EQ(schedule.at(10), 1e-7) << "as in transformers";
  schedule.peak = 1e-8;
  for (const std::size_t step : {0u, 5u, 10u}) EXPECT_EQ(schedule.at(step), 1e-8) << "it never rises above the peak";
}

TEST(LearningRate, TheDecayOfAStableScheduleLeavesWarmUpAlone) {
  const LearningRateSchedule schedule{.kind = ScheduleKind::warmup_stable_decay,
                                      .peak = 1.0,
                                      .steps = 10,
                                      .warmup_steps = 4,
                                      .minimum = 0.5,
                                      .decay_fraction = 1.0};
  EXPECT_EQ(schedule.at(3), 0.75);
  EXPECT_EQ(schedule.at(4), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(7), 0.75);
  for (const std::size_t step : {10u, 11u}) EXPECT_EQ(schedule.at(step), 0.5);
}

TEST(LearningRate, NamesAreReadBack) {
  using enum ScheduleKind;
  for (const ScheduleKind kind : {linear, constant, cosine, step, warmup_stable_decay, polynomial}) {
    EXPECT_EQ(parse_schedule(to_string(kind)), kind);
  }
  EXPECT_THAT(
      tests::error_of([] { parse_schedule("cubic"); }),
      HasSubstr("`schedule cubic`: expected linear, constant, cosine, step, warmup-stable-decay or polynomial"));
}

}  // namespace
}  // namespace mylos::nn
