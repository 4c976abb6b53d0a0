#pragma once

#include "core/batch.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace mylos::tasks {

/// Splits an evaluation into batches: samples in order, as many as fit a fixed number of rows.
class EvaluationSlices {
 public:
  /// Most rows of a batch, unless a single sample has more. On a host enough to occupy it, and few enough to stay in
  /// its caches; on a device enough that launches and the wait at the end of a batch take little of its time.
  static constexpr std::size_t most_rows = runs_on_host ? 2048 : 16384;

  /// Sample i has lengths[i] rows. There must be at least one sample.
  explicit EvaluationSlices(std::span<const std::size_t> lengths, std::size_t rows_of_batch = most_rows);

  std::size_t count() const { return starts_.size() - 1; }
  std::size_t begin(std::size_t index) const { return starts_[index]; }
  std::size_t end(std::size_t index) const { return starts_[index + 1]; }
  std::vector<std::size_t> samples(std::size_t index) const;
  /// Returns a shape that no batch exceeds.
  const BatchShape& largest() const { return largest_; }

 private:
  std::vector<std::size_t> starts_;  ///< (batches + 1) samples before each batch
  BatchShape largest_;
};

}  // namespace mylos::tasks
