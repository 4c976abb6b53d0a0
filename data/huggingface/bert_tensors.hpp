#pragma once

#include <string>
#include <string_view>

#include "data/huggingface/weight_files.hpp"

/// What weight files call the tensors of a BERT that answers questions.
namespace mylos::data {

/// The name today's transformers gives the tensor `name`: LayerNorm.gamma is .weight, .beta is .bias, and a bare
/// encoder's "embeddings." and "encoder." stand below "bert.".
std::string canonical_bert_name(std::string_view name);

/// These names; the pooler, heads for other tasks and buffers that hold no weights are ignored.
TensorNaming bert_tensor_naming();

}  // namespace mylos::data
