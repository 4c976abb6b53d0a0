// The schedule of learning rates that follows from a configuration. tests/nn/test_learning_rate.cpp has its values.

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

TEST(LearningRateSchedule, HasTheSettingsOfTheConfiguration) {
  TrainConfig config = config_of(nn::ScheduleKind::step);
  config.learning_rate_min = 1e-5;
  config.decay_steps = {2, 4};
  config.decay_factor = 0.25;
  const auto schedule = learning_rate_schedule(config, 8);
  EXPECT_EQ(schedule.at(1), 8e-5);
  EXPECT_EQ(schedule.at(2), 2e-5);
  EXPECT_EQ(schedule.at(4), 1e-5);
  config.schedule = nn::ScheduleKind::warmup_stable_decay;
  config.decay_fraction = 0.5;
  EXPECT_EQ(learning_rate_schedule(config, 8).at(3), config.learning_rate);
  EXPECT_LT(learning_rate_schedule(config, 8).at(5), config.learning_rate);
  config.schedule = nn::ScheduleKind::polynomial;
  config.learning_rate_min = 0.0;
  config.decay_power = 2.0;
  EXPECT_NEAR(learning_rate_schedule(config, 8).at(4), 1e-7 + 0.25 * (config.learning_rate - 1e-7), 1e-12);
}

}  // namespace
}  // namespace mylos::train
