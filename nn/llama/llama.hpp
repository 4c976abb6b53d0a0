#pragma once

#include "nn/llama/llama_shape.hpp"
#include "nn/model.hpp"
#include "nn/vocabulary_loss.hpp"

#include <memory>

/// Llama with a head that predicts the next token.
namespace mylos::nn {

/// Names of the arrays it reads from a batch; the first was given to Batch::set_indices.
namespace language_modeling {
inline constexpr const char* tokens = "tokens";        ///< (T) in [0, V)
inline constexpr const char* positions = "positions";  ///< (T) in [0, positions), from 0 in each sample
inline constexpr const char* labels = "labels";        ///< (T) the token that follows; negative = none
}  // namespace language_modeling

/// A sample's loss is the sum over its predicted tokens. Outputs of `predict` are (T, 1): the likeliest next token of
/// each row.
class LlamaModel : public Model {
 public:
  /// Forward only: calls `action` for one piece of logits (R, V) after the other. Memory is that of `predict`.
  virtual void logits(const Pass& pass, const Batch& batch, const LogitsAction& action) const = 0;
};

/// The model in `precision`. Rows bear Hugging Face's names; units are "embeddings", "layer.0" ... and "head", which
/// borrows the embeddings' row where they are tied.
/// Errors: std::invalid_argument for a shape whose parts do not fit.
std::unique_ptr<LlamaModel> make_llama(const LlamaShape& shape, Precision precision);

}  // namespace mylos::nn
