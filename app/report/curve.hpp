#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

/// Curves: named sequences of points, and fewer points that look the same.
namespace mylos::app {

struct CurvePoint {
  double x = 0.0;
  double y = 0.0;  ///< the curve has a gap where it is not finite, or so large that a range could overflow

  bool is_finite() const { return std::abs(x) < 1e200 && std::abs(y) < 1e200; }
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  ///< x does not descend
  std::size_t colour = 0;          ///< of the palette
  bool faint = false;              ///< what a smoothed one is of
  bool marks = false;              ///< a mark at each point
};

struct Extent {
  double low_x, high_x, low_y, high_y;
  bool empty() const { return !(low_x <= high_x); }
};

/// Of the points that are finite, of all curves together.
Extent extent_of(const std::vector<Curve>& curves);

/// The points, or of each of `columns` equal parts of their range the first, the lowest, the highest and the last, and
/// a gap where all of a part are gaps: as many columns of pixels show the same picture.
std::vector<CurvePoint> decimated(const std::vector<CurvePoint>& points, std::size_t columns);

/// Each point's mean over `width` neighbours in the middle of which it stands, gaps left out. At the ends over fewer,
/// as many on each side, or a falling curve would begin too low and end too high; where they were less than half, none.
std::vector<CurvePoint> smoothed(const std::vector<CurvePoint>& points, std::size_t width);

/// The point nearest to `x` that is finite and no further away than `reach`; null where there is none.
const CurvePoint* nearest_point(const std::vector<CurvePoint>& points, double x, double reach);

}  // namespace mylos::app
