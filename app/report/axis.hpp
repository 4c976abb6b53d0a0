#pragma once

#include <string>
#include <vector>

/// The axis of a chart. Its ticks are multiples of a step of 1, 2, 2.5 or 5 times a power of ten.
namespace mylos::app {

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
