#pragma once

#include "core/batch.hpp"
#include "train/engine/samples/work_kind.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace mylos::train {

/// The training samples of each step: all that memory plans, time plans and the split of steps over ranks need from a
/// task.
class SampleStream {
 public:
  virtual ~SampleStream() = default;

  /// Returns the steps of one pass over the training samples.
  virtual std::size_t steps_per_epoch() const = 0;
  /// Returns the samples of the global batch of `step` (from 0), in order. Depends on the seed and the step alone.
  virtual std::vector<std::size_t> global_batch(std::size_t step) const = 0;
  /// Returns the unit of work that steps count; tokens by default.
  virtual WorkKind work() const { return {}; }
  /// Returns the bytes of samples that are read ahead of batches up to this shape.
  virtual std::size_t loaded_bytes(const BatchShape&) const { return 0; }
  /// Returns the rows (tokens, pixels) of a training sample in a batch.
  virtual std::size_t rows_of(std::size_t sample) const = 0;
  /// Returns the divisor for the sum of these samples' losses.
  virtual double weight(std::span<const std::size_t> samples) const = 0;
};

}  // namespace mylos::train
