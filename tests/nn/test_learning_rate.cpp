#include "nn/learning_rate.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

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

TEST(LearningRate, NamesAreReadBack) {
  for (const ScheduleKind kind : {ScheduleKind::linear, ScheduleKind::constant, ScheduleKind::cosine}) {
    EXPECT_EQ(parse_schedule(to_string(kind)), kind);
  }
  EXPECT_THAT(tests::error_of([] { parse_schedule("step"); }),
              HasSubstr("--schedule step: there are linear, constant and cosine"));
}

}  // namespace
}  // namespace mylos::nn
