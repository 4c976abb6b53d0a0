#pragma once

#include "tasks/interface/task_kind.hpp"

/// The two small models as task kinds, as a program based on mylos would add them. A model directory contains a
/// config.json with only a model_type. A data file is a JSON object that specifies how much data to generate.
namespace mylos::small_models {

/// "next-word": sentences for the causal decoder. Example of data: {"sentences": 200}.
const tasks::TaskKind& next_word();

/// "line-class": groups of images for the convolution classifier, trained with SGD. Data: {"groups": 12} for training,
/// {"images": 50, "after": 12} for evaluation on the images after 12 groups.
const tasks::TaskKind& line_class();

}  // namespace mylos::small_models
