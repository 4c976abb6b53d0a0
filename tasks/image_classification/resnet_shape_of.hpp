#pragma once

#include "families/resnet/resnet_config.hpp"
#include "families/resnet/resnet_shape.hpp"
#include "tasks/image_classification/image_input.hpp"

/// Converts config.json to the model's shape; the two may not depend on each other.
namespace mylos::tasks {

families::ResnetShape resnet_shape_of(const families::ResnetConfig& config, const ImageInput& input,
                                      double label_smoothing = 0.0);

}  // namespace mylos::tasks
