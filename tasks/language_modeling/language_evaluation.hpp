#pragma once

#include "data/text/samples.hpp"
#include "tasks/interface/evaluation_slices.hpp"
#include "tasks/language_modeling/language_samples.hpp"
#include "train/engine/task.hpp"

#include <string>
#include <vector>

namespace mylos::tasks {

/// Scores a language model by the loss per predicted token in nats, its exponential (perplexity), and the accuracy of
/// the most likely token.
class LanguageEvaluation final : public train::Evaluation {
 public:
  explicit LanguageEvaluation(data::SampleSet samples);
  LanguageEvaluation(const LanguageEvaluation&) = delete;  // batches refer to the samples
  LanguageEvaluation& operator=(const LanguageEvaluation&) = delete;

  const data::SampleSet& samples() const { return samples_; }

  std::size_t batches() const override { return slices_.count(); }
  BatchShape largest_batch() const override { return slices_.largest(); }
  void assemble(std::size_t index, Batch& batch) const override;
  void take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) override;
  train::Metrics score() override;
  std::span<const train::MetricKind> kinds() const override;

  /// Returns the last score in the format of results.json; empty before the first.
  const std::string& results() const { return results_; }

 private:
  data::SampleSet samples_;
  SampleBatcher batcher_;
  EvaluationSlices slices_;
  double loss_sum_ = 0.0;  ///< sum over the batches taken since the first
  std::size_t right_ = 0;  ///< number of correctly predicted tokens
  std::string results_;
};

}  // namespace mylos::tasks
