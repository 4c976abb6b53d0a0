#pragma once

#include "tasks/interface/task_kind.hpp"

namespace mylos::tasks {

/// Returns the kind for language modelling with Llama on texts.
const TaskKind& language_modeling();

}  // namespace mylos::tasks
