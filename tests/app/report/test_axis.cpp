#include "app/report/axis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace mylos::app {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> labels(const Axis& axis) {
  std::vector<std::string> texts;
  for (const double tick : axis.ticks) texts.push_back(axis.label(tick));
  return texts;
}

TEST(Axis, TicksAreRoundNumbers) {
  EXPECT_THAT(labels(value_axis(0.13, 4.7, 5)), ElementsAre("0", "1", "2", "3", "4", "5"));
  EXPECT_THAT(labels(value_axis(1.21, 1.52, 5)), ElementsAre("1.2", "1.3", "1.4", "1.5", "1.6"));
  EXPECT_THAT(labels(value_axis(0, 2.2, 5)), ElementsAre("0.0", "0.5", "1.0", "1.5", "2.0", "2.5"));
  EXPECT_THAT(labels(value_axis(-30, 12, 5)), ElementsAre("-30", "-20", "-10", "0", "10", "20"));
  EXPECT_THAT(labels(value_axis(0, 11000, 3)), ElementsAre("0", "5,000", "10,000", "15,000"));
}

TEST(Axis, VeryLargeAndSmallNumbersHaveTheirPowerOfTenOnce) {
  const Axis small = value_axis(0, 3e-5, 4), large = value_axis(0, 2e7, 4);
  EXPECT_EQ(small.exponent, -5);
  EXPECT_THAT(labels(small), ElementsAre("0", "1", "2", "3"));
  EXPECT_EQ(large.exponent, 7);
  EXPECT_THAT(labels(large), ElementsAre("0.0", "0.5", "1.0", "1.5", "2.0"));
}

TEST(Axis, OneValueHasRoomAroundIt) {
  for (const double value : {0.0, 16.67, -3.0, 1e-12, 1e12}) {
    const Axis axis = value_axis(value, value, 5);
    EXPECT_GE(axis.ticks.size(), 2u) << value;
    EXPECT_LT(axis.low, axis.high) << value;
    EXPECT_GE(axis.position(value), 0.0) << value;
    EXPECT_LE(axis.position(value), 1.0) << value;
  }
}

TEST(Axis, WhatIsNotFiniteIsNoRange) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const Axis& axis : {value_axis(infinity, -infinity, 5), value_axis(0, infinity, 5), value_axis(nan, nan, 5)}) {
    EXPECT_EQ(axis.low, 0.0);
    EXPECT_EQ(axis.high, 1.0);
  }
}

TEST(Axis, StepsAreWholeNumbersFromZero) {
  EXPECT_THAT(labels(range_axis(1, 3, 5, true)), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(labels(range_axis(1, 3390, 5, true)), ElementsAre("0", "1,000", "2,000", "3,000"));
  EXPECT_THAT(labels(range_axis(5000, 5010, 5, true)),
              ElementsAre("5,000", "5,002", "5,004", "5,006", "5,008", "5,010"));
  EXPECT_THAT(labels(range_axis(0, 1.5, 3, false)), ElementsAre("0.0", "0.5", "1.0", "1.5"));
}

}  // namespace
}  // namespace mylos::app
