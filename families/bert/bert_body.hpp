#pragma once

#include "families/bert/bert_layer.hpp"
#include "nn/body.hpp"
#include "nn/model.hpp"

#include <memory>

namespace mylos::families {

/// Names of the batch arrays that a BERT reads besides the positions. They must have been passed to
/// Batch::set_indices, and Batch::group_positions called for training.
namespace question_answering {
inline constexpr const char* tokens = "tokens";      ///< (T) in [0, V)
inline constexpr const char* segments = "segments";  ///< (T) in [0, token types)
using nn::names::end_labels;
using nn::names::start_labels;
}  // namespace question_answering

/// Returns the embeddings and layers of a BERT: a vector (H) for each token. Tensors have Hugging Face's names; the
/// units are "embeddings", "layer.0", ... Errors: std::invalid_argument if the sizes in `shape` do not fit together.
template <class T>
std::unique_ptr<nn::Body<T>> make_bert_body(const BertShape& shape);

/// Returns a BERT with a span head, "qa_outputs"; `predict` returns (T, 2) logits. Errors: those of make_bert_body.
std::unique_ptr<nn::Model> make_bert_question_answering(const BertShape& shape, Precision precision);

}  // namespace mylos::families
