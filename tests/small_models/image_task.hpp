#pragma once

#include "tests/small_models/convolution_classifier.hpp"
#include "tests/small_models/generated_task.hpp"

#include <vector>

/// Noisy images of a horizontal, vertical, falling or rising line. The class is the direction of the line.
namespace mylos::small_models {

struct ImageTaskConfig {
  ClassifierShape shape = {};
  std::size_t groups = 60;  ///< number of groups in the training set; BatchNorm normalises over a group
  std::size_t images_per_group = 16;
  std::size_t groups_per_batch = 6;
  std::size_t evaluation_images = 200;  ///< not used for training
  std::uint64_t seed = 7;
  std::filesystem::path start = {};  ///< an exported directory to start from
};

/// Draws an image's pixels and returns its class, as a function of (seed, index) alone.
std::int32_t draw_image(const ImageSize& size, std::uint64_t seed, std::size_t index, std::span<float> pixels);

/// Images stored one after the other.
struct Images {
  std::vector<float> pixels;
  std::vector<std::int32_t> classes;
};

/// Trains on groups of images. Evaluates on other images, each as a sample of its own.
class ImageTask : public GeneratedTask {
 public:
  explicit ImageTask(const ImageTaskConfig& config);

  train::WorkKind work() const override;
  std::size_t rows_of(std::size_t) const override { return config_.images_per_group * config_.shape.image.pixels(); }
  /// Counts images, because a sample's loss is the sum over its images.
  double weight(std::span<const std::size_t> samples) const override {
    return static_cast<double>(samples.size() * config_.images_per_group);
  }
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;

 private:
  ImageTaskConfig config_;
  mutable Images drawn_;  ///< images of the current batch
};

}  // namespace mylos::small_models
