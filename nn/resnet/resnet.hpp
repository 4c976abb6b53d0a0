#pragma once

#include "nn/model.hpp"
#include "nn/resnet/resnet_shape.hpp"

#include <memory>

namespace mylos::nn {

/// Names of the arrays of a batch. A row of the batch is an image, and a sample is a group of images: what BatchNorm
/// normalises over in training. All images have the model's size, in NHWC.
namespace images {
inline constexpr const char* pixels = "pixels";  ///< (T H W C) bytes, normalised by the model
inline constexpr const char* pixel_values =
    "pixel_values";                              ///< (T H W C) floats, taken as they are where they are given
inline constexpr const char* labels = "labels";  ///< (T) in [0, labels)
}  // namespace images

/// ResNet with softmax cross entropy: a sample's loss is the sum over its images. `predict` uses the running statistics
/// and returns (T, labels) logits; a sample may then be any number of images.
///
/// Rows have Hugging Face's names; convolutions (out, kh, kw, in), where files have (out, in, kh, kw). Units are
/// "stem", each block ("stages.0.layers.1") and "head". One-dimensional rows do not decay.
std::unique_ptr<Model> make_resnet(const ResnetShape& shape, Precision precision);

}  // namespace mylos::nn
