#pragma once

#include "families/resnet/resnet_shape.hpp"
#include "nn/body.hpp"
#include "nn/model.hpp"

#include <memory>

namespace mylos::families {

/// Returns the stem, blocks and average pooling of a ResNet: a vector for each image. A row of the batch is an image of
/// the model's size, and a sample is a group of images over which BatchNorm normalises in training. Prediction uses the
/// running statistics; there a sample may be any number of images.
///
/// Tensors have Hugging Face's names. Convolution weights are (out, kh, kw, in); in files they are (out, in, kh, kw).
/// The units are "stem" and each block ("stages.0.layers.1"). One-dimensional tensors have no weight decay.
/// Errors: std::invalid_argument if the sizes in `shape` do not fit together.
template <class T>
std::unique_ptr<nn::Body<T>> make_resnet_body(const ResnetShape& shape);

}  // namespace mylos::families
