#pragma once

#include "nn/bert/bert_layer.hpp"
#include "tests/small_models/generated_task.hpp"

#include <vector>

/// BERT with a span head over generated tokens: a task without files. The answer is the run between two marks.
namespace mylos::small_models {

struct SpanTaskConfig {
  nn::BertShape shape = {};
  Precision precision = Precision::float32;
  std::size_t sequences = 64;
  std::size_t shortest = 3;              ///< tokens; the longest is shape.positions
  std::size_t batch = 8;                 ///< sequences a step
  std::size_t evaluation_sequences = 0;  ///< that training does not see
  std::uint64_t seed = 5;
};

/// A small BERT with dropout; sequences of unlike length, in batches that no number of ranks divides.
SpanTaskConfig uneven_spans(Precision precision = Precision::float32);
/// The same BERT without dropout, which depends on the step, in batches of one size.
SpanTaskConfig even_spans(Precision precision);

/// Sequences one after the other.
struct Spans {
  std::vector<std::size_t> lengths;
  std::vector<std::int32_t> tokens, segments, positions, starts, ends;
};

/// Evaluates the loss and how often both ends of the answer are the likeliest.
class SpanTask : public GeneratedTask {
 public:
  explicit SpanTask(const SpanTaskConfig& config);

  /// The first sequence is the longest that there may be.
  std::size_t rows_of(std::size_t sample) const override;
  double weight(std::span<const std::size_t> samples) const override { return static_cast<double>(samples.size()); }
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;

 private:
  SpanTaskConfig config_;
  mutable Spans drawn_;  ///< of the batch that is being made
};

}  // namespace mylos::small_models
