#pragma once

#include "core/batch.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace mylos::tasks {

/// The batches of an evaluation: samples in their order, as many at once as fit a fixed count of rows, which is enough
/// to fill the machine and few enough to stay in its caches.
class EvaluationSlices {
 public:
  /// Rows of a batch, unless a single sample has more.
  static constexpr std::size_t most_rows = 2048;

  /// Sample i has lengths[i] rows; there is at least one sample.
  explicit EvaluationSlices(std::span<const std::size_t> lengths);

  std::size_t count() const { return starts_.size() - 1; }
  std::size_t begin(std::size_t index) const { return starts_[index]; }
  std::size_t end(std::size_t index) const { return starts_[index + 1]; }
  std::vector<std::size_t> samples(std::size_t index) const;
  /// What no batch exceeds.
  const BatchShape& largest() const { return largest_; }

 private:
  std::vector<std::size_t> starts_;  ///< (batches + 1) samples before each batch
  BatchShape largest_;
};

}  // namespace mylos::tasks
