// The learning rates of a run, as INTERFACE specifies them: at step i of T, from 0, peak i / W in warm-up, then linear
// decay, peak (T - i) / (T - W).

#include "train/engine/train_config.hpp"

#include <gtest/gtest.h>

namespace mylos::train {
namespace {

TrainConfig config_of(nn::ScheduleKind kind, double warmup_ratio = 0.0) {
  TrainConfig config;
  config.schedule = kind;
  config.learning_rate = 8e-5;
  config.warmup_ratio = warmup_ratio;
  return config;
}

TEST(LearningRateSchedule, LinearFallsFromThePeakTowardsZero) {
  const auto schedule = learning_rate_schedule(config_of(nn::ScheduleKind::linear), 8);
  EXPECT_DOUBLE_EQ(schedule.at(0), 8e-5);
  EXPECT_DOUBLE_EQ(schedule.at(1), 7e-5);
  EXPECT_DOUBLE_EQ(schedule.at(7), 1e-5);
  EXPECT_EQ(schedule.at(8), 0.0);
  EXPECT_EQ(schedule.at(9), 0.0);
}

TEST(LearningRateSchedule, WarmUpRisesFromZero) {
  const auto schedule = learning_rate_schedule(config_of(nn::ScheduleKind::linear, 0.25), 16);
  EXPECT_EQ(schedule.warmup_steps, 4u);
  EXPECT_EQ(schedule.at(0), 0.0);
  EXPECT_DOUBLE_EQ(schedule.at(1), 2e-5);
  EXPECT_DOUBLE_EQ(schedule.at(3), 6e-5);
  EXPECT_DOUBLE_EQ(schedule.at(4), 8e-5);
  EXPECT_DOUBLE_EQ(schedule.at(10), 4e-5);
  EXPECT_DOUBLE_EQ(schedule.at(15), 8e-5 / 12.0);
}

TEST(LearningRateSchedule, WarmUpRatioRoundsUp) {
  EXPECT_EQ(learning_rate_schedule(config_of(nn::ScheduleKind::linear, 0.1), 101).warmup_steps, 11u);
  EXPECT_EQ(learning_rate_schedule(config_of(nn::ScheduleKind::linear, 0.1), 100).warmup_steps, 10u);
  EXPECT_EQ(learning_rate_schedule(config_of(nn::ScheduleKind::linear, 1e-9), 100).warmup_steps, 1u);
  EXPECT_EQ(learning_rate_schedule(config_of(nn::ScheduleKind::linear, 0.0), 100).warmup_steps, 0u);
}

TEST(LearningRateSchedule, WarmUpStepsWinOverTheRatio) {
  TrainConfig config = config_of(nn::ScheduleKind::linear, 0.5);
  config.warmup_steps = 0;
  EXPECT_EQ(learning_rate_schedule(config, 100).warmup_steps, 50u) << "as Trainer takes --warmup_steps 0";
  config.warmup_steps = 7;
  EXPECT_EQ(learning_rate_schedule(config, 100).warmup_steps, 7u);
}

TEST(LearningRateSchedule, ARunOfWarmUpAloneOnlyRises) {
  const auto schedule = learning_rate_schedule(config_of(nn::ScheduleKind::linear, 1.0), 4);
  EXPECT_DOUBLE_EQ(schedule.at(3), 6e-5);
  EXPECT_EQ(schedule.at(4), 0.0);
}

TEST(LearningRateSchedule, HasTheSettingsOfTheConfiguration) {
  TrainConfig config = config_of(nn::ScheduleKind::step);
  config.learning_rate_min = 1e-5;
  config.decay_steps = {2, 4};
  config.decay_factor = 0.25;
  const auto schedule = learning_rate_schedule(config, 8);
  EXPECT_EQ(schedule.at(1), 8e-5);
  EXPECT_EQ(schedule.at(2), 2e-5);
  EXPECT_EQ(schedule.at(4), 1e-5);
}

TEST(OptimizerKind, HasAName) {
  EXPECT_EQ(to_string(OptimizerKind::adamw), "adamw");
  EXPECT_EQ(to_string(OptimizerKind::sgd), "sgd");
}

TEST(LearningRateSchedule, ConstantStaysAtThePeakAfterWarmUp) {
  const auto schedule = learning_rate_schedule(config_of(nn::ScheduleKind::constant, 0.25), 8);
  EXPECT_DOUBLE_EQ(schedule.at(1), 4e-5);
  EXPECT_DOUBLE_EQ(schedule.at(2), 8e-5);
  EXPECT_DOUBLE_EQ(schedule.at(7), 8e-5);
  EXPECT_DOUBLE_EQ(schedule.at(100), 8e-5);
}

// transformers' get_cosine_schedule_with_warmup: peak (1 + cos(pi (i - W) / (T - W))) / 2.
TEST(LearningRateSchedule, CosineIsHalfAPeriodAfterWarmUp) {
  const auto schedule = learning_rate_schedule(config_of(nn::ScheduleKind::cosine, 0.5), 8);
  EXPECT_DOUBLE_EQ(schedule.at(2), 4e-5);
  EXPECT_DOUBLE_EQ(schedule.at(4), 8e-5);
  EXPECT_NEAR(schedule.at(5), 6.82842712474619e-5, 1e-18);
  EXPECT_NEAR(schedule.at(6), 4e-5, 1e-18);
  EXPECT_NEAR(schedule.at(7), 1.17157287525381e-5, 1e-18);
  EXPECT_EQ(schedule.at(8), 0.0);
}

}  // namespace
}  // namespace mylos::train
