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

/// Scores an image model by the mean cross entropy in nats, without label smoothing, and by top-1 and top-5 accuracy.
class ImageEvaluation final : public train::Evaluation {
 public:
  /// The prediction for an image.
  struct Prediction {
    std::size_t image = 0;
    std::int32_t label = 0, predicted = 0;
    float probability = 0.0f;    ///< probability of the predicted label
    bool is_among_five = false;  ///< the label is among the five likeliest
    double loss = 0.0;
  };

  /// `labels` are the names of the model's labels; `matched` maps labels of the data to those of the model. With
  /// `skips_damaged`, damaged images are predicted from black pixels, and left out of the score.
  ImageEvaluation(std::unique_ptr<data::ImageSet> set, std::vector<std::string> labels,
                  const std::vector<std::int32_t>& matched, const ImageInput& input, std::size_t threads,
                  bool skips_damaged = false);
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
  /// Includes the images that are read ahead.
  std::size_t kept_bytes() const override;

  /// Returns the last score in the format of results.json; empty before the first.
  const std::string& results() const { return results_; }
  /// Returns one JSON object per image: its file or index, its label, the predicted label and its probability.
  std::string prediction_lines() const;
  /// Returns the mistakes of the last score with the largest losses, as stored in evaluations/.
  ImageMistakes mistakes() const;

 private:
  std::vector<std::uint64_t> images_of(std::size_t index) const;

  std::unique_ptr<data::ImageSet> set_;
  std::vector<std::string> labels_;
  std::size_t side_;   ///< side of an image, in pixels
  std::size_t batch_;  ///< images per batch
  mutable ImageBatches images_;
  std::vector<Prediction> predictions_;
  std::string results_;
};

/// Returns log(sum of exp(logits)), computed in double.
double log_sum_exp(std::span<const float> logits);

}  // namespace mylos::tasks
