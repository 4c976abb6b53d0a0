#pragma once

#include "families/resnet/resnet_model.hpp"
#include "tests/small_models/generated_task.hpp"

#include <vector>

namespace mylos::small_models {

/// Directions of a line: horizontal, vertical, falling and rising.
inline constexpr std::size_t line_classes = 4;

/// Returns a ResNet of two blocks for gray images of 8 x 8 pixels.
families::ResnetShape tiny_resnet();

struct ImageTaskConfig {
  std::size_t groups = 15;  ///< number of groups in the training set; BatchNorm normalises over a group
  std::size_t images_per_group = 4;
  std::size_t groups_per_batch = 5;
  std::size_t evaluation_groups = 30;  ///< not used for training
  std::uint64_t seed = 7;
  std::filesystem::path start = {};  ///< an exported directory to start from
};

/// A ResNet on groups of noisy images of a line. The class is the direction of the line.
class ImageTask : public GeneratedTask {
 public:
  explicit ImageTask(const ImageTaskConfig& config = {});

  train::WorkKind work() const override;
  std::size_t rows_of(std::size_t) const override { return config_.images_per_group; }
  /// Counts images, because a sample's loss is the sum over its images.
  double weight(std::span<const std::size_t> samples) const override {
    return static_cast<double>(samples.size() * config_.images_per_group);
  }

 protected:
  void fill(std::span<const std::size_t> samples, Batch& batch) const override;
  double correct(std::span<const std::size_t> samples, std::span<const float> logits) const override;

 private:
  /// Returns the numbers of the images of these groups.
  std::vector<std::size_t> images_of(std::span<const std::size_t> samples) const;
  std::int32_t class_of(std::size_t image) const;
  void draw(std::size_t image, std::span<float> pixels) const;

  ImageTaskConfig config_;
};

/// Gives all pixels of a batch of images this value.
void spoil_pixels(Batch& batch, float value);

}  // namespace mylos::small_models
