#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// How quantities are written for people.
namespace mylos {

/// "0:07", "12:05", "3:04:05", "2-01:00:00" (days), from seconds; "?" where they are not finite or negative.
std::string duration_text(double seconds);

/// "512 B", "1.5 KiB", "1.23 GiB".
std::string bytes_text(std::size_t bytes);

/// "1.25 kWh", from joules.
std::string energy_text(double joules);

/// "1,234,567".
std::string count_text(std::size_t count);

/// "1 window", "1,234 windows".
std::string count_of(std::size_t count, const std::string& singular);

/// "model    text" and a line end: the name in its column, and what there is to say of it.
std::string named_line(std::string_view name, std::string_view text);

}  // namespace mylos
