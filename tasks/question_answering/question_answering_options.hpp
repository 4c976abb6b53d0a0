#pragma once

#include "core/base/option.hpp"
#include "tasks/interface/run_config.hpp"

#include <vector>

namespace mylos::tasks {

/// The options of question answering, which fill its SquadConfig.
std::vector<Option<RunConfig>> question_answering_options();

}  // namespace mylos::tasks
