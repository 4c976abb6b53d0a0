#pragma once

#include "data/huggingface/llama_config.hpp"
#include "nn/llama/llama_shape.hpp"

/// Between config.json and the model, which may not know each other.
namespace mylos::tasks {

nn::LlamaShape llama_shape_of(const data::LlamaConfig& config);

}  // namespace mylos::tasks
