#pragma once

#include <string>
#include <string_view>

#include "data/huggingface/weight_files.hpp"

/// What weight files call the tensors of a Llama.
namespace mylos::data {

/// The name that a LlamaForCausalLM gives the tensor `name`: those of a bare LlamaModel stand below "model.".
std::string canonical_llama_name(std::string_view name);

/// These names. Buffers that hold no weights are ignored, and with `tied` embeddings lm_head.weight, which some files
/// hold a second time.
TensorNaming llama_tensor_naming(bool tied);

}  // namespace mylos::data
