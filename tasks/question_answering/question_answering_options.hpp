#pragma once

#include "core/base/option.hpp"
#include "tasks/interface/run_config.hpp"

#include <vector>

namespace mylos::tasks {

/// Returns the options of question answering, which set its SquadConfig.
std::vector<Option<RunConfig>> question_answering_options();

}  // namespace mylos::tasks
