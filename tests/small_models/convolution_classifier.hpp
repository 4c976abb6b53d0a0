#pragma once

#include "nn/model.hpp"
#include "tests/small_models/image_kernels.hpp"

#include <memory>

/// Two blocks of 3 x 3 convolution, BatchNorm and ReLU, each followed by average pooling, and a linear head. A sample
/// of a batch is a group of images of the same size, and its rows are their pixels. In training, BatchNorm normalises
/// over a group. Prediction uses the running statistics, and a sample may be a single image.
namespace mylos::small_models {

/// Names of the arrays that it reads from a batch of N images.
namespace images {
inline constexpr const char* pixels = "pixels";    ///< (T) float
inline constexpr const char* classes = "classes";  ///< (N) in [0, classes)
}  // namespace images

struct ClassifierShape {
  ImageSize image{12, 12};  ///< both even
  std::size_t first_channels = 8;
  std::size_t second_channels = 16;
  std::size_t classes = 4;
  float momentum = 0.1f;  ///< momentum of the running statistics
};

/// Creates the model in float. `predict` returns logits (N, classes). A sample's loss is the sum over its images.
std::unique_ptr<nn::Model> make_convolution_classifier(const ClassifierShape& shape);

}  // namespace mylos::small_models
