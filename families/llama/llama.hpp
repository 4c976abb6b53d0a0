#pragma once

#include "families/llama/llama_shape.hpp"
#include "nn/model.hpp"
#include "nn/vocabulary_loss.hpp"

#include <memory>

/// Llama with a head that predicts the next token.
namespace mylos::families {

/// Names of the batch arrays that the model reads besides the positions; the first must have been passed to
/// Batch::set_indices.
namespace language_modeling {
inline constexpr const char* tokens = "tokens";  ///< (T) in [0, V)
inline constexpr const char* labels = "labels";  ///< (T), the next token; negative values are ignored
}  // namespace language_modeling

/// A Llama model. A sample's loss is the sum over its predicted tokens. `predict` returns (T, 1): the most likely next
/// token of each row.
class LlamaModel : public nn::Model {
 public:
  /// Runs forward only and calls `action` with one chunk of logits (R, V) after the other. Needs the memory of
  /// `predict`.
  virtual void logits(const nn::Pass& pass, const Batch& batch, const nn::LogitsAction& action) const = 0;
};

/// Returns the model in `precision`. Tensors have Hugging Face's names. The units are "embeddings", "layer.0", ... and
/// "head"; with tied embeddings the head borrows their tensor.
/// Errors: std::invalid_argument if the sizes in `shape` do not fit together.
std::unique_ptr<LlamaModel> make_llama(const LlamaShape& shape, Precision precision);

}  // namespace mylos::families
