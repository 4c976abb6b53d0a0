#include "app/report/axis.hpp"

#include "core/base/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace mylos::app {
namespace {

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
