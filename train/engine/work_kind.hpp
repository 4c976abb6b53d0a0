#pragma once

#include "core/batch.hpp"

#include <cstddef>
#include <string>

namespace mylos::train {

/// Names what the steps of a task count: tokens of text, or images. A sample may have one of them, or many.
struct WorkKind {
  std::string name = "tokens";     ///< plural, a key of metrics.jsonl
  std::string singular = "token";  ///< for people: "1 token"
  std::size_t rows = 1;            ///< of a batch that each one takes: an image's pixels
  std::string samples =
      "sequences";  ///< plural, a key of metrics.jsonl; the `name` again where a sample is one of them
  std::string sample = "sequence";
  /// Whether --batch and --micro-batch count these, and not samples: images, whose samples are groups of them.
  bool sizes_batches = false;

  /// How many there are in `batch_rows` rows of batches.
  std::size_t count(std::size_t batch_rows) const { return batch_rows / rows; }
  double count(double batch_rows) const { return batch_rows / static_cast<double>(rows); }
  /// The size of a batch of this shape as --batch and --micro-batch count it, and what they count.
  std::size_t batch_size(const BatchShape& shape) const { return sizes_batches ? count(shape.rows) : shape.samples; }
  const std::string& batch_unit() const { return sizes_batches ? singular : sample; }
  const std::string& batch_units() const { return sizes_batches ? name : samples; }
};

/// 0 where no time passed.
inline double per_second(double amount, double seconds) { return seconds > 0.0 ? amount / seconds : 0.0; }

/// The key of metrics.jsonl for what is done a second: "tokens_per_second" of "tokens".
inline std::string rate_key(const std::string& work) { return work + "_per_second"; }

}  // namespace mylos::train
