#pragma once

#include <string>
#include <vector>

/// An axis whose ticks are multiples of 1, 2, 2.5 or 5 times a power of ten.
namespace mylos::app {

struct Axis {
  double low = 0.0, high = 1.0;  ///< ends; all ticks lie between them
  std::vector<double> ticks;     ///< ascending, at least two
  int exponent = 0;              ///< labels are in units of ten to this power
  int decimals = 0;              ///< decimals of labels

  /// Returns the label of a tick: "1,000", "0.25".
  std::string label(double tick) const;
  /// Returns the position of `value`: 0 at the low end, 1 at the high end.
  double position(double value) const { return (value - low) / (high - low); }
};

/// Returns an axis for values from `low` to `high` with about `count` ticks. It begins and ends at ticks, and begins at
/// zero if `low` is not far above zero. If one of them is not finite, the axis runs from 0 to 1.
Axis value_axis(double low, double high, int count);
/// Returns an axis from exactly `low` to `high`, or from zero if `low` is close to it. Ticks are whole numbers if
/// `whole`.
Axis range_axis(double low, double high, int count, bool whole);

}  // namespace mylos::app
