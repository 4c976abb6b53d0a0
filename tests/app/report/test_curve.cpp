#include "app/report/curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace mylos::app {
namespace {

using ::testing::ElementsAre;

constexpr double gap = std::numeric_limits<double>::quiet_NaN();

std::vector<CurvePoint> line(std::size_t count) {
  std::vector<CurvePoint> points;
  for (std::size_t i = 0; i < count; ++i) points.push_back({static_cast<double>(i), static_cast<double>(i % 7)});
  return points;
}

TEST(Curve, FewPointsStayAsTheyAre) { EXPECT_EQ(decimated(line(400), 100).size(), 400u); }

TEST(Curve, DecimationKeepsEndsAndExtremes) {
  std::vector<CurvePoint> points = line(10'000);
  points[1234].y = 99.0;
  points[7777].y = -99.0;
  const std::vector<CurvePoint> kept = decimated(points, 100);
  EXPECT_LE(kept.size(), 400u);
  EXPECT_EQ(kept.front().x, 0.0);
  EXPECT_EQ(kept.back().x, 9999.0);
  EXPECT_TRUE(std::ranges::is_sorted(kept, {}, &CurvePoint::x));
  EXPECT_EQ(std::ranges::max(kept, {}, &CurvePoint::y).x, 1234.0);
  EXPECT_EQ(std::ranges::min(kept, {}, &CurvePoint::y).x, 7777.0);
}

TEST(Curve, DecimationKeepsGapsThatArePartsWide) {
  std::vector<CurvePoint> points = line(10'000);
  for (std::size_t i = 3000; i < 4000; ++i) points[i].y = gap;
  points[5000].y = std::numeric_limits<double>::infinity();
  const std::vector<CurvePoint> kept = decimated(points, 100);
  const auto has_gap = [&](double begin, double end) {
    return std::ranges::any_of(
        kept, [&](const CurvePoint& point) { return point.x >= begin && point.x < end && !point.is_finite(); });
  };
  EXPECT_TRUE(has_gap(3000, 4000));
  EXPECT_FALSE(has_gap(4000, 10'000));
}

TEST(Curve, SmoothingIsTheMeanOfNeighboursWithoutGaps) {
  const std::vector<CurvePoint> means = smoothed({{1, 1}, {2, gap}, {3, 5}, {4, 9}}, 3);
  ASSERT_EQ(means.size(), 4u);
  EXPECT_EQ(means[0].y, 1.0);
  EXPECT_EQ(means[1].y, 3.0);
  EXPECT_EQ(means[2].y, 7.0);
  EXPECT_EQ(means[3].y, 9.0);
  EXPECT_FALSE(smoothed({{1, gap}}, 3)[0].is_finite());
}

TEST(Curve, SmoothingAFallingLineIsTheLine) {
  std::vector<CurvePoint> points;
  for (std::size_t i = 0; i < 100; ++i) points.push_back({static_cast<double>(i), 100.0 - static_cast<double>(i)});
  const std::vector<CurvePoint> means = smoothed(points, 21);
  EXPECT_EQ(means.front().x, 5.0);
  EXPECT_EQ(means.back().x, 94.0);
  for (const CurvePoint& point : means) EXPECT_DOUBLE_EQ(point.y, 100.0 - point.x);
  EXPECT_EQ(smoothed({points.begin(), points.begin() + 3}, 21).size(), 3u);
  EXPECT_TRUE(smoothed({}, 3).empty());
}

TEST(Curve, ExtentLeavesGapsOut) {
  const Curve curve{.name = "", .points = {{1, gap}, {2, -4}, {3, 8}, {4, std::numeric_limits<double>::infinity()}}};
  const Extent extent = extent_of({curve});
  EXPECT_EQ(extent.low_x, 2.0);
  EXPECT_EQ(extent.high_x, 3.0);
  EXPECT_EQ(extent.low_y, -4.0);
  EXPECT_EQ(extent.high_y, 8.0);
  EXPECT_TRUE(extent_of({{.name = "", .points = {{1, gap}}}}).empty());
  EXPECT_EQ(nearest_point(curve.points, 1.0, 10.0)->x, 2.0);
  EXPECT_EQ(nearest_point({{1, gap}, {4, 1}}, 1.0, 2.0), nullptr);
}

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
