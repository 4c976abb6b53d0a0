#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

/// Curves: named sequences of points, with decimation and smoothing; and the axes along which they are drawn.
namespace mylos::app {

struct CurvePoint {
  double x = 0.0;
  double y = 0.0;  ///< if not finite, or so large that a range could overflow, the curve has a gap

  bool is_finite() const { return std::abs(x) < 1e200 && std::abs(y) < 1e200; }
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  ///< x is ascending
  std::size_t colour = 0;          ///< index in the palette
  bool faint = false;              ///< whether it is the raw data of a smoothed curve
  bool marks = false;              ///< whether each point has a mark
};

struct Extent {
  double low_x, high_x, low_y, high_y;
  bool empty() const { return !(low_x <= high_x); }
};

/// Returns the extent of the finite points of all curves.
Extent extent_of(const std::vector<Curve>& curves);

/// Splits the range of x into `columns` equal parts and returns the first, lowest, highest and last point of each, or a
/// gap if all its points are gaps. Drawn in as many pixel columns, the result looks the same. Short curves are returned
/// unchanged.
std::vector<CurvePoint> decimated(const std::vector<CurvePoint>& points, std::size_t columns);

/// Returns the centred moving average over `width` points, skipping gaps. Near the ends the window shrinks on both
/// sides, because a one-sided window would make a falling curve begin too low and end too high. Points with less than
/// half the window are dropped.
std::vector<CurvePoint> smoothed(const std::vector<CurvePoint>& points, std::size_t width);

/// Returns the finite point nearest to `x` within a distance of `reach`; null if there is none.
const CurvePoint* nearest_point(const std::vector<CurvePoint>& points, double x, double reach);

/// The axis of a chart. Its ticks are multiples of a step of 1, 2, 2.5 or 5 times a power of ten.
struct Axis {
  double low = 0.0, high = 1.0;  ///< ends; all ticks lie between them
  std::vector<double> ticks;     ///< ascending, at least two
  int exponent = 0;              ///< labels show values divided by 10^exponent
  int decimals = 0;              ///< decimals of labels

  /// Returns the label of a tick: "1,000", "0.25".
  std::string label(double tick) const;
  /// Returns the position of `value`: 0 at the low end, 1 at the high end.
  double position(double value) const { return (value - low) / (high - low); }
};

/// Returns an axis for values from `low` to `high`, with about `count` ticks. Both of its ends are ticks. It begins at
/// zero if `low` is positive but small compared with `high`. The axis is [0, 1] if `low` or `high` is not finite.
Axis value_axis(double low, double high, int count);
/// Returns an axis that runs exactly from `low` to `high`, or from zero if `low` is positive and close to zero. If
/// `whole` is true, ticks are whole numbers.
Axis range_axis(double low, double high, int count, bool whole);

}  // namespace mylos::app
