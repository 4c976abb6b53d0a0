#pragma once

#include "core/device.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

/// The rows of an index array grouped by value, to sum the gradient of a gathered table group by group.
namespace mylos {

struct IndexGroups {
  ConstVector<std::int32_t> values;   ///< (U) distinct values, ascending
  ConstVector<std::uint32_t> starts;  ///< (U+1) start of each group in `rows`
  ConstVector<std::uint32_t> rows;    ///< (T) row numbers, ascending within a group
};

/// Groups index arrays on the host by a counting sort, in O(rows + largest value). Keeps its memory for the next array.
class IndexGrouper {
 public:
  /// Replaces the groups by those of `indices`. The values must have been checked against the table that they index:
  /// memory grows to 4 bytes per value up to the largest. Errors: std::invalid_argument that names the array if a value
  /// is negative.
  void group(std::string_view name, std::span<const std::int32_t> indices);

  /// The groups on the host, see IndexGroups. Valid until the next call of `group`.
  std::span<const std::int32_t> values() const { return values_; }
  std::span<const std::uint32_t> starts() const { return starts_; }
  std::span<const std::uint32_t> rows() const { return rows_; }

 private:
  void count(std::span<const std::int32_t> indices);
  void start_groups();
  void place(std::span<const std::int32_t> indices);

  std::vector<std::uint32_t>
      next_;  ///< per value: number of its rows, then the position of its next row; 0 between calls
  std::vector<std::int32_t> values_;
  std::vector<std::uint32_t> starts_, rows_;
};

}  // namespace mylos
