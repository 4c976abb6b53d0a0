#pragma once

#include "tasks/interface/task_kind.hpp"

namespace mylos::tasks {

/// Returns the kind for question answering with BERT on SQuAD and data in its format.
const TaskKind& question_answering();

}  // namespace mylos::tasks
