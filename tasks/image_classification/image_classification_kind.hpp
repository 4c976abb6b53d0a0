#pragma once

#include "tasks/interface/task_kind.hpp"

namespace mylos::tasks {

/// Returns the kind for image classification with ResNets.
const TaskKind& image_classification();

}  // namespace mylos::tasks
