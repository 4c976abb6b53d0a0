#pragma once

#include "core/batch.hpp"
#include "core/kernels/dropout.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

namespace mylos::bench {

/// Packed sequences of 128 rows, and one with the remaining rows.
class PackedRows {
 public:
  static constexpr std::size_t sequence_rows = 128;

  explicit PackedRows(std::size_t rows) {
    std::vector<std::size_t> lengths(rows / sequence_rows, sequence_rows);
    if (rows % sequence_rows > 0) lengths.push_back(rows % sequence_rows);
    std::vector<std::uint32_t> ids(lengths.size());
    std::iota(ids.begin(), ids.end(), 7u);
    batch_.reset(lengths, ids);
  }

  DropoutRows device() const { return dropout_rows(batch_); }
  Batch& batch() { return batch_; }
  const Batch& batch() const { return batch_; }
  /// Returns the factor that dropout applies to an element.
  static double factor(const DropoutKey& key, std::size_t row, std::size_t column) {
    const auto sample = static_cast<std::uint32_t>(7 + row / sequence_rows);
    const auto position = static_cast<std::uint32_t>(row % sequence_rows);
    const DropoutDraw draw = dropout_draw(key, sample, position, 0, static_cast<std::uint32_t>(column / dropout_group));
    return draw[static_cast<unsigned>(column % dropout_group)] < key.threshold() ? 0.0 : key.scale();
  }

 private:
  Batch batch_;
};

}  // namespace mylos::bench
