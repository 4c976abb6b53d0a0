#include "core/base/text/quantities.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace mylos {

std::string duration_text(double seconds) {
  constexpr double longest = 1e15;  // beyond this the days overflow an integer
  if (!(seconds >= 0.0) || seconds > longest) return "?";
  const auto total = static_cast<long long>(std::llround(seconds));
  const long long days = total / 86400, hours = total / 3600 % 24, minutes = total / 60 % 60, rest = total % 60;
  if (days > 0) return fmt::format("{}-{:02}:{:02}:{:02}", days, hours, minutes, rest);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{}:{:02}", minutes, rest);
}

std::string bytes_text(std::size_t bytes) {
  static constexpr std::array units = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024.0;
  std::size_t unit = 0;
  while (value >= 1023.995 && unit + 1 < units.size()) {
    value /= 1024.0;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, unit == 0 ? 1 : 2, units[unit]);
}

std::string energy_text(double joules) { return fmt::format("{:.3g} kWh", joules / 3.6e6); }

std::string count_text(std::size_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t position = digits.size(); position > 3; position -= 3) digits.insert(position - 3, 1, ',');
  return digits;
}

std::string count_of(std::size_t count, const std::string& singular) {
  return fmt::format("{} {}{}", count_text(count), singular, count == 1 ? "" : "s");
}

std::string shape_text(std::span<const std::size_t> shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

std::string named_line(std::string_view name, std::string_view text) { return fmt::format("{:<8} {}\n", name, text); }

}  // namespace mylos
