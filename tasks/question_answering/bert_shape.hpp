#pragma once

#include "data/huggingface/bert_config.hpp"
#include "nn/bert/bert_layer.hpp"

#include <optional>

/// Converts config.json to the model's shape; the two may not depend on each other.
namespace mylos::tasks {

/// Returns the model's sizes from its configuration. `dropout`, if given, replaces both of its probabilities.
nn::BertShape bert_shape(const data::BertConfig& config, std::optional<double> dropout = {});

}  // namespace mylos::tasks
