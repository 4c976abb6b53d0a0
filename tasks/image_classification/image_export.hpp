#pragma once

#include "core/parameters.hpp"
#include "families/interface/image_model.hpp"
#include "tasks/image_classification/image_input.hpp"
#include "train/engine/model_exporter.hpp"

#include <memory>

namespace mylos::tasks {

/// Returns the exporter of an image classifier: weights in PyTorch's layout and of type `precision`, BatchNorm's
/// running statistics and counts, and preprocessor_config.json.
std::unique_ptr<train::ModelExporter> image_exporter(const families::ImageModel& model, const ImageInput& input,
                                                     const ParameterTable& table, Precision precision);

}  // namespace mylos::tasks
