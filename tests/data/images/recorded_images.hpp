#pragma once

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "data/images/image.hpp"
#include "tests/support/golden.hpp"

namespace mylos::tests {

/// Decodes hexadecimal digits to bytes.
inline std::string from_hexadecimal(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

/// Returns the file called `name` in a recording of tests/golden/images.
inline std::string recorded_image_file(const std::string& recording, const std::string& name) {
  for (const auto& line : golden_lines("images/" + recording)) {
    if (line.at("name") == name) return from_hexadecimal(line.at("file"));
  }
  fail("no recorded file " + name);
}

/// Returns the largest difference between elements of two arrays.
inline int largest_difference(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  int largest = a.size() == b.size() ? 0 : 1000;
  for (std::size_t i = 0; i < a.size() && largest < 1000; ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace mylos::tests
