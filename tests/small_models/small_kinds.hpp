#pragma once

#include "tasks/interface/task_kind.hpp"

/// The two small models as kinds of tasks: what a program of its own adds to mylos. A model's directory holds a
/// config.json that only names its model_type; a data file is a JSON object that says how much is generated.
namespace mylos::small_models {

/// "next-word": sentences for the causal decoder. Data: {"sentences": 200}.
const tasks::TaskKind& next_word();

/// "line-class": groups of images for the convolution classifier, by SGD. Data: {"groups": 12} to train on, {"images":
/// 50, "after": 12} to evaluate on those after 12 groups.
const tasks::TaskKind& line_class();

}  // namespace mylos::small_models
