#pragma once

#include "core/batch.hpp"
#include "train/engine/work_kind.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace mylos::train {

/// The training samples of each step. Memory plans, time plans and the split of a step over ranks read nothing else of
/// a task.
class SampleStream {
 public:
  virtual ~SampleStream() = default;

  /// Steps of one pass over the training samples.
  virtual std::size_t steps_per_epoch() const = 0;
  /// The samples of the global batch of `step` (from 0), in order: a function of the seed and the step alone.
  virtual std::vector<std::size_t> global_batch(std::size_t step) const = 0;
  /// What a step counts: tokens, unless the task says otherwise.
  virtual WorkKind work() const { return {}; }
  /// Bytes that samples take which are read ahead of batches up to this shape.
  virtual std::size_t loaded_bytes(const BatchShape&) const { return 0; }
  /// Rows (tokens, pixels) that a training sample takes in a batch.
  virtual std::size_t rows_of(std::size_t sample) const = 0;
  /// Returns the number that the sum of these samples' losses is divided by.
  virtual double weight(std::span<const std::size_t> samples) const = 0;
};

}  // namespace mylos::train
