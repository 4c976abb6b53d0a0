#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace mylos::train {

/// What each step of a run consists of: all that plans, shares of ranks and bounds of memory see of a task.
class SampleStream {
 public:
  virtual ~SampleStream() = default;

  /// Steps of one pass over the training samples.
  virtual std::size_t steps_per_epoch() const = 0;
  /// The samples of the global batch of `step` (from 0), in order: a function of the seed and the step alone.
  virtual std::vector<std::size_t> global_batch(std::size_t step) const = 0;
  /// Rows (tokens) that a training sample takes in a batch.
  virtual std::size_t rows_of(std::size_t sample) const = 0;
  /// What the summed losses of these samples are divided by.
  virtual double weight(std::span<const std::size_t> samples) const = 0;
};

}  // namespace mylos::train
