#pragma once

#include "core/base/options/option.hpp"
#include "tasks/interface/run_config.hpp"

#include <vector>

namespace mylos::tasks {

/// Returns the options of adapters, which all tasks on texts have.
std::vector<Option<RunConfig>> adapter_options();

}  // namespace mylos::tasks
