#pragma once

#include "tasks/interface/task_kind.hpp"

namespace mylos::tasks {

/// Question answering with BERT on SQuAD and data of its form.
const TaskKind& question_answering();

}  // namespace mylos::tasks
