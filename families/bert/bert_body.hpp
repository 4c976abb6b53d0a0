#pragma once

#include "families/bert/bert_layer.hpp"
#include "nn/body.hpp"
#include "nn/model.hpp"

#include <memory>

namespace mylos::families {

/// Returns the embeddings and layers of a BERT: a vector (H) for each token. Tensors have Hugging Face's names; the
/// units are "embeddings", "layer.0", ... Errors: std::invalid_argument if the sizes in `shape` do not fit together.
template <class T>
std::unique_ptr<nn::Body<T>> make_bert_body(const BertShape& shape);

}  // namespace mylos::families
