#pragma once

#include <string>
#include <string_view>

#include "data/huggingface/weight_files.hpp"

/// Names of the tensors of a BERT question-answering model in weight files.
namespace mylos::families {

/// Returns the name of tensor `name` in current transformers: LayerNorm.gamma becomes .weight, .beta becomes .bias, and
/// the "embeddings." and "encoder." of a bare encoder get the prefix "bert.".
std::string canonical_bert_name(std::string_view name);

/// True for tensors of the heads for pre-training and for the classification of texts or tokens, by canonical name.
bool is_other_bert_head(std::string_view name);

/// Returns the naming based on canonical_bert_name. It ignores the pooler, heads for other tasks, and buffers that hold
/// no weights.
data::TensorNaming bert_tensor_naming();

}  // namespace mylos::families
