#pragma once

#include <string>
#include <vector>

/// An axis whose ticks are multiples of 1, 2, 2.5 or 5 times a power of ten.
namespace mylos::app {

struct Axis {
  double low = 0.0, high = 1.0;  ///< ends; the ticks are between them
  std::vector<double> ticks;     ///< ascending, at least two
  int exponent = 0;              ///< labels are in units of ten to this power
  int decimals = 0;              ///< of labels

  /// The tick's label: "1,000", "0.25".
  std::string label(double tick) const;
  /// Where `value` stands, 0 at the low end and 1 at the high one.
  double position(double value) const { return (value - low) / (high - low); }
};

/// The axis for values from `low` to `high` with about `count` ticks. It begins and ends at ticks, at zero where that
/// is not far below `low`. Values that are not finite are as if there were none.
Axis value_axis(double low, double high, int count);
/// The axis from `low` to `high` exactly, or from zero where `low` is near; its ticks are whole numbers where `whole`.
Axis range_axis(double low, double high, int count, bool whole);

}  // namespace mylos::app
