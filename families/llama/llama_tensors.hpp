#pragma once

#include <string>
#include <string_view>

#include "data/huggingface/weight_files.hpp"

/// Names of a Llama's tensors in weight files.
namespace mylos::families {

/// Returns the name of tensor `name` in a LlamaForCausalLM: names of a bare LlamaModel get the prefix "model.".
std::string canonical_llama_name(std::string_view name);

/// Returns the naming based on canonical_llama_name. It ignores buffers that hold no weights and, with `tied`
/// embeddings, lm_head.weight, which some files store a second time.
data::TensorNaming llama_tensor_naming(bool tied);

}  // namespace mylos::families
