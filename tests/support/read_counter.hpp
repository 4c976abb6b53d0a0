#pragma once

#include "core/base/files/text_file.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>

namespace mylos::tests {

/// Returns the bytes that this process has read from files. nullopt if the system does not count them.
inline std::optional<std::uint64_t> bytes_read() {
  std::error_code unreadable;
  if (!std::filesystem::exists("/proc/self/io", unreadable)) return std::nullopt;
  std::istringstream words(read_text_file("/proc/self/io"));
  std::string name;
  std::uint64_t count = 0;
  while (words >> name >> count) {
    if (name == "rchar:") return count;
  }
  return std::nullopt;
}

/// An upper bound for the bytes that the counter itself and MPI read between two calls.
inline constexpr std::uint64_t uncounted_reads = 4096;

}  // namespace mylos::tests
