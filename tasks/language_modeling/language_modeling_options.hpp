#pragma once

#include "core/base/option.hpp"
#include "tasks/interface/run_config.hpp"

#include <vector>

namespace mylos::tasks {

/// The options of language modelling, which fill its LanguageConfig.
std::vector<Option<RunConfig>> language_modeling_options();

}  // namespace mylos::tasks
