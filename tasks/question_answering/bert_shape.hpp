#pragma once

#include "data/huggingface/bert_config.hpp"
#include "nn/bert/bert_layer.hpp"

#include <optional>

/// Between config.json and the model, which may not know each other.
namespace mylos::tasks {

/// The model's sizes from its configuration; `dropout`, where given, replaces both of its probabilities.
nn::BertShape bert_shape(const data::BertConfig& config, std::optional<double> dropout = {});

}  // namespace mylos::tasks
