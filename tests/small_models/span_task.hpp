#pragma once

#include "families/bert/bert_model.hpp"
#include "tests/small_models/generated_task.hpp"

#include <vector>

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

/// BERT with a span head on generated tokens. The answer is the span between two marks. Accuracy is how often both of
/// its ends have the highest probability.
class SpanTask : public GeneratedTask {
 public:
  explicit SpanTask(const SpanTaskConfig& config);

  /// The first sequence has the maximum length.
  std::size_t rows_of(std::size_t sample) const override;
  std::optional<train::MetricKind> training_score() const override {
    return train::MetricKind{"training_exact_windows", "Exact windows in training", "%"};
  }

 protected:
  void fill(std::span<const std::size_t> samples, Batch& batch) const override;
  double correct(std::span<const std::size_t> samples, std::span<const float> logits) const override;

 private:
  /// A sequence's tokens and the ends of its answer.
  struct Span {
    std::vector<std::int32_t> tokens;
    std::int32_t start, end;
  };
  Span draw(std::size_t sample) const;

  SpanTaskConfig config_;
};

}  // namespace mylos::small_models
