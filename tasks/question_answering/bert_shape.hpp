#pragma once

#include "core/kernels/attention_candidates.hpp"
#include "families/bert/bert_config.hpp"
#include "families/bert/bert_layer.hpp"
#include "train/engine/train_config.hpp"

#include <optional>

/// Converts config.json to the model's shape; the two may not depend on each other.
namespace mylos::tasks {

/// Returns the model's sizes from its configuration. `dropout`, if given, replaces both of its probabilities.
families::BertShape bert_shape(const families::BertConfig& config, std::optional<double> dropout = {});

/// Returns the model's attention, and the requirements of a run on it. `trains` says whether there is dropout.
AttentionUse bert_attention(const families::BertShape& shape, const train::TrainConfig& engine, bool trains);

}  // namespace mylos::tasks
