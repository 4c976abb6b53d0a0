#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

/// Formatting of quantities for people.
namespace mylos {

/// Formats seconds as "0:07", "12:05", "3:04:05" or "2-01:00:00" (days first); "?" if not finite or negative.
std::string duration_text(double seconds);

/// Formats bytes as "512 B", "1.5 KiB" or "1.23 GiB".
std::string bytes_text(std::size_t bytes);

/// Formats joules as "1.25 kWh".
std::string energy_text(double joules);

/// Formats a count as "1,234,567".
std::string count_text(std::size_t count);

/// Formats a count with its noun: "1 window", "1,234 windows".
std::string count_of(std::size_t count, const std::string& singular);

/// Formats a shape: "(2, 384)".
std::string shape_text(std::span<const std::size_t> shape);

/// Formats a labelled line, with a line end: "model    text".
std::string named_line(std::string_view name, std::string_view text);

}  // namespace mylos
