#pragma once

#include "tasks/interface/task_kind.hpp"

namespace mylos::tasks {

/// Language modelling with Llama on texts.
const TaskKind& language_modeling();

}  // namespace mylos::tasks
