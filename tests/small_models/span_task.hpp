#pragma once

#include "families/bert/bert_layer.hpp"
#include "tests/small_models/generated_task.hpp"

#include <vector>

/// BERT with a span head on generated tokens: a task without files. The answer is the span between two marks.
namespace mylos::small_models {

struct SpanTaskConfig {
  families::BertShape shape = {};
  Precision precision = Precision::float32;
  std::size_t sequences = 64;
  std::size_t shortest = 3;              ///< tokens; the longest sequence has shape.positions tokens
  std::size_t batch = 8;                 ///< sequences per step
  std::size_t evaluation_sequences = 0;  ///< not used for training
  std::uint64_t seed = 5;
  std::vector<std::string> freeze = {};  ///< patterns of frozen tensors
};

/// Returns a small BERT with dropout, for sequences of different lengths. Its batch is a prime number of sequences.
SpanTaskConfig uneven_spans(Precision precision = Precision::float32);
/// Returns the same BERT without dropout, whose masks depend on the step, and with batches of equal size.
SpanTaskConfig even_spans(Precision precision);

/// Sequences stored one after the other.
struct Spans {
  std::vector<std::size_t> lengths;
  std::vector<std::int32_t> tokens, segments, starts, ends;
};

/// Evaluates the loss, and how often both ends of the answer have the highest probability.
class SpanTask : public GeneratedTask {
 public:
  explicit SpanTask(const SpanTaskConfig& config);

  /// The first sequence has the maximum length.
  std::size_t rows_of(std::size_t sample) const override;
  double weight(std::span<const std::size_t> samples) const override { return static_cast<double>(samples.size()); }
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;
  std::optional<train::MetricKind> training_score() const override {
    return train::MetricKind{"training_exact_windows", "Exact windows in training", "%"};
  }

 private:
  SpanTaskConfig config_;
  mutable Spans drawn_;  ///< sequences of the current batch
};

}  // namespace mylos::small_models
