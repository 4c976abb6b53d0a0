#pragma once

#include "tasks/interface/task_kind.hpp"

namespace mylos::small_models {

/// Returns the kind "next-word", as a program based on mylos would add it: sentences for the word network. A model
/// directory contains a config.json with only a model_type. A data file is a JSON object that specifies how many
/// sentences to generate: {"sentences": 200} for training, {"sentences": 50, "after": 200} for evaluation on those
/// after 200.
const tasks::TaskKind& next_word();

}  // namespace mylos::small_models
