#include "app/report/curve.hpp"

#include "core/base/text/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace mylos::app {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), gap = std::numeric_limits<double>::quiet_NaN();

/// Appends the points of one part [begin, end) that are kept, in order.
void keep_part(const CurvePoint* begin, const CurvePoint* end, std::vector<CurvePoint>& kept) {
  const CurvePoint *first = nullptr, *last = nullptr, *lowest = nullptr, *highest = nullptr;
  for (const CurvePoint* point = begin; point != end; ++point) {
    if (!point->is_finite()) continue;
    if (first == nullptr) first = lowest = highest = point;
    last = point;
    if (point->y < lowest->y) lowest = point;
    if (point->y > highest->y) highest = point;
  }
  if (first == nullptr) return kept.push_back({begin->x, gap});
  std::vector<const CurvePoint*> chosen = {first, lowest, highest, last};
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  for (const CurvePoint* point : chosen) kept.push_back(*point);
}

/// Returns the smallest nice step that splits `length` into at most `count` intervals.
double nice_step(double length, int count) {
  const double least = length / std::max(count, 1), power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= least * (1.0 - 1e-9)) return factor * power;
  }
  return 10.0 * power;
}

int decimals_of(double step) {
  constexpr int most = 9;
  for (int decimals = 0; decimals < most; ++decimals) {
    const double scaled = step * std::pow(10.0, decimals);
    if (std::abs(scaled - std::round(scaled)) < 1e-6 * scaled) return decimals;
  }
  return most;
}

/// Chooses the number of decimals and, for very large or small numbers, a common power of ten for the axis.
void choose_labels(Axis& axis, double step) {
  const double largest = std::max(std::abs(axis.low), std::abs(axis.high));
  const int power = largest > 0.0 ? static_cast<int>(std::floor(std::log10(largest) + 1e-9)) : 0;
  if (power >= 6 || power <= -3) axis.exponent = power;
  axis.decimals = decimals_of(step / std::pow(10.0, axis.exponent));
}

void place_ticks(Axis& axis, double step) {
  const double first = std::ceil(axis.low / step - 1e-9), last = std::floor(axis.high / step + 1e-9);
  const auto count = static_cast<std::size_t>(std::max(0.0, last - first)) + 1;
  for (std::size_t i = 0; i < count; ++i) axis.ticks.push_back((first + static_cast<double>(i)) * step);
  choose_labels(axis, step);
}

/// Separates the ends if they are equal or so close that rounding would determine the ticks.
void separate(double& low, double& high) {
  if (!std::isfinite(low) || !std::isfinite(high) || low > high) {
    low = 0.0;
    high = 1.0;
  }
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low > 1e-9 * size && high - low > 1e-300) return;
  const double margin = size > 1e-300 ? 0.1 * size : 1.0;
  low -= low > 0.0 ? std::min(margin, low) : low == 0.0 ? 0.0 : margin;
  high += margin;
}

}  // namespace

Extent extent_of(const std::vector<Curve>& curves) {
  Extent extent{infinity, -infinity, infinity, -infinity};
  for (const Curve& curve : curves) {
    for (const CurvePoint& point : curve.points) {
      if (!point.is_finite()) continue;
      extent.low_x = std::min(extent.low_x, point.x);
      extent.high_x = std::max(extent.high_x, point.x);
      extent.low_y = std::min(extent.low_y, point.y);
      extent.high_y = std::max(extent.high_y, point.y);
    }
  }
  return extent;
}

std::vector<CurvePoint> decimated(const std::vector<CurvePoint>& points, std::size_t columns) {
  if (points.size() <= 4 * columns) return points;
  const double low = points.front().x, width = points.back().x - low;
  const auto part_of = [&](const CurvePoint& point) {
    const double position = width > 0.0 ? (point.x - low) / width : 0.0;
    return std::min(columns - 1, static_cast<std::size_t>(position * static_cast<double>(columns)));
  };
  std::vector<CurvePoint> kept;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin + 1;
    while (end < points.size() && part_of(points[end]) == part_of(points[begin])) ++end;
    keep_part(points.data() + begin, points.data() + end, kept);
    begin = end;
  }
  return kept;
}

std::vector<CurvePoint> smoothed(const std::vector<CurvePoint>& points, std::size_t width) {
  std::vector<double> sums = {0.0}, counts = {0.0};
  for (const CurvePoint& point : points) {
    sums.push_back(sums.back() + (point.is_finite() ? point.y : 0.0));
    counts.push_back(counts.back() + (point.is_finite() ? 1.0 : 0.0));
  }
  std::vector<CurvePoint> means;
  if (points.empty()) return means;
  const std::size_t last = points.size() - 1, half = width / 2, least = std::min(half / 2, last / 4);
  for (std::size_t i = least; i <= last - least; ++i) {
    const std::size_t side = std::min({half, i, last - i}), begin = i - side, end = i + side + 1;
    const double count = counts[end] - counts[begin];
    means.push_back({points[i].x, count > 0.0 ? (sums[end] - sums[begin]) / count : gap});
  }
  return means;
}

const CurvePoint* nearest_point(const std::vector<CurvePoint>& points, double x, double reach) {
  const CurvePoint* nearest = nullptr;
  for (const CurvePoint& point : points) {
    if (!point.is_finite() || std::abs(point.x - x) > reach) continue;
    if (nearest == nullptr || std::abs(point.x - x) < std::abs(nearest->x - x)) nearest = &point;
  }
  return nearest;
}

std::string Axis::label(double tick) const {
  const double scaled = tick / std::pow(10.0, exponent);
  if (decimals > 0) return fmt::format("{:.{}f}", scaled, decimals);
  return (scaled < -0.5 ? "-" : "") + count_text(static_cast<std::size_t>(std::llround(std::abs(scaled))));
}

Axis value_axis(double low, double high, int count) {
  constexpr double near_zero = 0.4;  // relative to the highest value: below this, the axis begins at zero
  separate(low, high);
  if (low > 0.0 && low < near_zero * high) low = 0.0;
  const double step = nice_step(high - low, count);
  Axis axis;
  axis.low = step * std::floor(low / step + 1e-9);
  axis.high = step * std::ceil(high / step - 1e-9);
  place_ticks(axis, step);
  return axis;
}

Axis range_axis(double low, double high, int count, bool whole) {
  constexpr double near_zero = 0.05;  // relative to the highest value
  separate(low, high);
  if (low > 0.0 && low <= std::max(near_zero * high, whole ? 1.0 : 0.0)) low = 0.0;
  const double step = nice_step(high - low, count);
  Axis axis;
  axis.low = low;
  axis.high = high;
  place_ticks(axis, whole ? std::max(1.0, std::ceil(step)) : step);
  return axis;
}

}  // namespace mylos::app
