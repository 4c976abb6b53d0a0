#include "app/report/curve.hpp"

#include <algorithm>
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

}  // namespace mylos::app
