#pragma once

#include "core/base/notice.hpp"
#include "tasks/interface/planned_run.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace mylos::tasks {

/// Returns the model called `name`, a directory or built-in sizes, without weights, for images of 224 x 224 pixels or
/// of the size in its preprocessor_config.json. Errors: std::runtime_error if there is no such model.
std::unique_ptr<nn::Model> make_image_network(const std::string& name, Precision precision);

/// Plans a run of the model called `name` on the data set `data` or, if that is empty, on as many images as ImageNet
/// has. Errors: std::runtime_error if a file or directory does not exist, UsageError if a batch cannot be split over
/// the ranks.
PlannedRun plan_images(const std::string& name, const std::filesystem::path& data, const RunConfig& run,
                       const Notice& notice);

}  // namespace mylos::tasks
