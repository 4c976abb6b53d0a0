#pragma once

#include "core/parameters.hpp"
#include "families/resnet/resnet_config.hpp"
#include "tasks/image_classification/image_input.hpp"
#include "train/engine/model_exporter.hpp"

#include <memory>

namespace mylos::tasks {

/// Returns the exporter of an image classifier: weights in PyTorch's layout and of type `precision`, BatchNorm's
/// running statistics and counts, and preprocessor_config.json.
std::unique_ptr<train::ModelExporter> image_exporter(const families::ResnetConfig& config, const ImageInput& input,
                                                     const ParameterTable& table, Precision precision);

}  // namespace mylos::tasks
