#pragma once

#include "core/kernels/dropout.hpp"
#include "tests/support/arrays.hpp"

#include <algorithm>
#include <vector>

/// Dropout of packed rows, drawn element by element.
namespace mylos::tests {

/// Packed samples of up to 17 rows. Their ids, which determine dropout, differ from their order.
struct Packing {
  std::vector<std::uint32_t> ids, samples;
  std::vector<std::int32_t> positions;

  explicit Packing(std::size_t rows) {
    for (std::uint32_t row = 0; row < rows; ++row) {
      samples.push_back(row / 17);
      positions.push_back(static_cast<std::int32_t>(row % 17));
      if (row % 17 == 0) ids.push_back(1000 - samples.back());
    }
  }
  DropoutRows device() const { return {device_integers(ids), device_integers(samples), device_integers(positions)}; }

  /// Returns the dropout factor of each element.
  Values factors(const DropoutKey& key, std::size_t columns) const {
    Values all(samples.size() * columns, 1.0);
    if (key.probability == 0.0f) return all;
    const double scale = 1.0 / (1.0 - static_cast<double>(key.probability));
    for (std::size_t row = 0; row < samples.size(); ++row) {
      for (std::uint32_t group = 0; 8 * group < columns; ++group) {
        const auto position = static_cast<std::uint32_t>(positions[row]);
        const DropoutDraw draw = dropout_draw(key, ids[samples[row]], position, 0, group);
        for (std::size_t i = 8 * group; i < std::min<std::size_t>(columns, 8 * group + 8); ++i) {
          all[row * columns + i] = draw[i % 8] < key.threshold() ? 0.0 : scale;
        }
      }
    }
    return all;
  }
};

}  // namespace mylos::tests
