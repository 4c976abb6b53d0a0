#pragma once

#include "tasks/image_classification/image_data.hpp"
#include "tasks/image_classification/image_mistakes.hpp"
#include "train/engine/task.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mylos::tasks {

/// Scores a model of images by the mean cross entropy of a label, in nats and without smoothing, and by how often the
/// label is the likeliest, and among the five likeliest.
class ImageEvaluation final : public train::Evaluation {
 public:
  /// What an image was taken for.
  struct Prediction {
    std::int32_t label = 0, predicted = 0;
    float probability = 0.0f;  ///< of the predicted label
    float loss = 0.0f;
  };

  /// `labels`: the names of the model's, `matched`: the model's number of each of the data's.
  ImageEvaluation(std::unique_ptr<data::ImageSet> set, std::vector<std::string> labels,
                  const std::vector<std::int32_t>& matched, const ImageInput& input, std::size_t threads);
  ImageEvaluation(const ImageEvaluation&) = delete;  // batches refer to the set
  ImageEvaluation& operator=(const ImageEvaluation&) = delete;

  const data::ImageSet& set() const { return *set_; }

  std::size_t batches() const override;
  BatchShape largest_batch() const override;
  void read_ahead(std::size_t first, std::size_t stride) const override;
  void assemble(std::size_t index, Batch& batch) const override;
  void take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) override;
  train::Metrics score() override;
  std::span<const train::MetricKind> kinds() const override;
  /// With the images that are read ahead.
  std::size_t kept_bytes() const override;

  /// The last score as results.json has it; empty before.
  const std::string& results() const { return results_; }
  /// A JSON object for each image: its file or index, its label, the predicted one and that one's probability.
  std::string prediction_lines() const;
  /// Those of the last score with the largest losses, as evaluations/ keeps them.
  ImageMistakes mistakes() const;

 private:
  std::vector<std::uint64_t> images_of(std::size_t index) const;

  std::unique_ptr<data::ImageSet> set_;
  std::vector<std::string> labels_;
  std::size_t side_;   ///< of an image, in pixels
  std::size_t batch_;  ///< images at once
  mutable ImageBatches images_;
  std::vector<Prediction> predictions_;
  double loss_sum_ = 0.0;  ///< of the batches taken since the first
  std::size_t right_ = 0, among_five_ = 0;
  std::string results_;
};

/// log(sum of exp(logits)) in double.
double log_sum_exp(std::span<const float> logits);

}  // namespace mylos::tasks
