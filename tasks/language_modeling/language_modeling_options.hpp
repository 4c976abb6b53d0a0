#pragma once

#include "core/base/option.hpp"
#include "tasks/interface/run_config.hpp"

#include <vector>

namespace mylos::tasks {

/// Returns the options of language modelling, which set its LanguageConfig.
std::vector<Option<RunConfig>> language_modeling_options();

}  // namespace mylos::tasks
