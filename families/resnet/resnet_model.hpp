#pragma once

#include "families/interface/image_model.hpp"
#include "families/resnet/resnet_shape.hpp"

#include <memory>

namespace mylos::families {

/// Returns a ResNet as tasks see it. Errors: those of read_resnet_config.
std::unique_ptr<ImageModel> resnet_model(const data::ModelConfig& config);

/// The last layer of a classifier, and its loss.
struct ResnetHead {
  std::size_t labels = 1000;
  float label_smoothing = 0.0f;  ///< in [0, 1)
};

/// Returns a ResNet that gives (T, labels) logits, with softmax cross entropy. A sample's loss is the sum over its
/// images. Errors: those of make_resnet_body; std::invalid_argument if the head has no labels.
std::unique_ptr<nn::Model> make_resnet(const ResnetShape& shape, const ResnetHead& head, Precision precision);

}  // namespace mylos::families
