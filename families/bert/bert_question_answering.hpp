#pragma once

#include "families/bert/bert_layer.hpp"
#include "nn/model.hpp"

#include <memory>

/// BERT with a span head: a start and an end logit for each token.
namespace mylos::families {

/// Names of the batch arrays that the model reads besides the positions. The first two must have been passed to
/// Batch::set_indices, and Batch::group_positions called for training.
namespace question_answering {
inline constexpr const char* tokens = "tokens";              ///< (T) in [0, V)
inline constexpr const char* segments = "segments";          ///< (T) in [0, token types)
inline constexpr const char* start_labels = "start_labels";  ///< (S), row within the sequence; ignored if beyond it
inline constexpr const char* end_labels = "end_labels";      ///< (S)
}  // namespace question_answering

/// Returns the model in `precision`; `predict` returns (T, 2) logits. Tensors have Hugging Face's names.
/// Errors: std::invalid_argument if the sizes in `shape` do not fit together.
std::unique_ptr<nn::Model> make_bert_question_answering(const BertShape& shape, Precision precision);

}  // namespace mylos::families
