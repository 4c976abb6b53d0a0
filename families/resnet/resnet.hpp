#pragma once

#include "families/resnet/resnet_shape.hpp"
#include "nn/model.hpp"

#include <memory>

namespace mylos::families {

/// Names of the batch arrays that the model reads. A row of the batch is an image, and a sample is a group of images
/// over which BatchNorm normalises in training. All images have the model's size, in NHWC.
namespace images {
inline constexpr const char* pixels = "pixels";  ///< (T H W C) bytes, normalised by the model
inline constexpr const char* pixel_values =
    "pixel_values";                              ///< (T H W C) floats, used unchanged; take precedence over `pixels`
inline constexpr const char* labels = "labels";  ///< (T) in [0, labels)
}  // namespace images

/// Returns a ResNet with softmax cross entropy. A sample's loss is the sum over its images. `predict` uses the running
/// statistics and returns (T, labels) logits; there a sample may be any number of images.
///
/// Tensors have Hugging Face's names. Convolution weights are (out, kh, kw, in); in files they are (out, in, kh, kw).
/// The units are "stem", each block ("stages.0.layers.1") and "head". One-dimensional tensors have no weight decay.
std::unique_ptr<nn::Model> make_resnet(const ResnetShape& shape, Precision precision);

}  // namespace mylos::families
