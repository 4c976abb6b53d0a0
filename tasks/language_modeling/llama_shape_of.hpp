#pragma once

#include "data/huggingface/llama_config.hpp"
#include "nn/llama/llama_shape.hpp"

/// Converts config.json to the model's shape; the two may not depend on each other.
namespace mylos::tasks {

nn::LlamaShape llama_shape_of(const data::LlamaConfig& config);

}  // namespace mylos::tasks
