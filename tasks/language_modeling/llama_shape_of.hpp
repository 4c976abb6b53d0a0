#pragma once

#include "core/kernels/attention_candidates.hpp"
#include "families/llama/llama_config.hpp"
#include "families/llama/llama_shape.hpp"
#include "train/engine/train_config.hpp"

/// Converts config.json to the model's shape; the two may not depend on each other.
namespace mylos::tasks {

families::LlamaShape llama_shape_of(const families::LlamaConfig& config);

/// Returns the model's attention, and the requirements of a run on it.
AttentionUse llama_attention(const families::LlamaShape& shape, const train::TrainConfig& engine);

}  // namespace mylos::tasks
