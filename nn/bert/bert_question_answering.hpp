#pragma once

#include "nn/bert/bert_layer.hpp"
#include "nn/model.hpp"

#include <memory>

/// BERT with a span head: a start and an end logit for each token.
namespace mylos::nn {

/// Names of the arrays it reads from a batch; the first three were given to Batch::set_indices.
namespace question_answering {
inline constexpr const char* tokens = "tokens";              ///< (T) in [0, V)
inline constexpr const char* segments = "segments";          ///< (T) in [0, token types)
inline constexpr const char* positions = "positions";        ///< (T) in [0, positions)
inline constexpr const char* start_labels = "start_labels";  ///< (S) row within the sequence; beyond it = ignored
inline constexpr const char* end_labels = "end_labels";      ///< (S)
}  // namespace question_answering

/// The model in `precision`; outputs of `predict` are (T, 2) logits. Rows bear Hugging Face's names.
/// Errors: std::invalid_argument for a shape whose parts do not fit.
std::unique_ptr<Model> make_bert_question_answering(const BertShape& shape, Precision precision);

}  // namespace mylos::nn
