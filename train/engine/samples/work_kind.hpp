#pragma once

#include "core/batch_shape.hpp"

#include <cstddef>
#include <string>

namespace mylos::train {

/// The unit of work that a task's steps count: tokens of text, or images. A sample has one or more of them.
struct WorkKind {
  std::string name = "tokens";        ///< plural, a key of metrics.jsonl
  std::string singular = "token";     ///< for display: "1 token"
  std::size_t rows = 1;               ///< rows per unit in a batch: an image's pixels
  std::string samples = "sequences";  ///< plural, a key of metrics.jsonl; equal to `name` if a sample is one unit
  std::string sample = "sequence";
  /// Whether --batch and --micro-batch count units instead of samples: images, whose samples are groups.
  bool sizes_batches = false;

  /// Returns the number of units in `batch_rows` rows of batches.
  std::size_t count(std::size_t batch_rows) const { return batch_rows / rows; }
  double count(double batch_rows) const { return batch_rows / static_cast<double>(rows); }
  /// Return the size of a batch of this shape as --batch and --micro-batch count it, and the name of what is counted.
  std::size_t batch_size(const BatchShape& shape) const { return sizes_batches ? count(shape.rows) : shape.samples; }
  const std::string& batch_units() const { return sizes_batches ? name : samples; }
};

/// Returns amount / seconds, or 0 if no time passed.
inline double per_second(double amount, double seconds) { return seconds > 0.0 ? amount / seconds : 0.0; }

/// Returns the key of a rate in metrics.jsonl: "tokens_per_second" for "tokens".
inline std::string rate_key(const std::string& work) { return work + "_per_second"; }

}  // namespace mylos::train
