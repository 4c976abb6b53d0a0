#pragma once

#include "tasks/interface/task_kind.hpp"

namespace mylos::tasks {

/// Returns the kind of task that trains Llama as a language model on texts.
const TaskKind& language_modeling();

}  // namespace mylos::tasks
