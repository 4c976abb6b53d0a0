#pragma once

#include "core/base/option.hpp"
#include "tasks/interface/run_config.hpp"

#include <vector>

namespace mylos::tasks {

/// Returns the options of image classification, which set its ImageConfig.
std::vector<Option<RunConfig>> image_options();

}  // namespace mylos::tasks
