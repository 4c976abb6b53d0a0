#pragma once

#include "families/llama/llama_shape.hpp"
#include "nn/body.hpp"

#include <memory>

namespace mylos::families {

/// Names of the batch arrays that a Llama reads besides the positions; the first must have been passed to
/// Batch::set_indices.
namespace language_modeling {
inline constexpr const char* tokens = "tokens";  ///< (T) in [0, V)
using nn::names::labels;                         ///< the next token
}  // namespace language_modeling

inline constexpr const char* llama_embeddings = "model.embed_tokens.weight";

/// Returns the embeddings, layers and final norm of a Llama: a vector (H) for each token. Tensors have Hugging Face's
/// names; the units are "embeddings", "layer.0", ... Errors: std::invalid_argument if the sizes in `shape` do not fit
/// together.
template <class T>
std::unique_ptr<nn::Body<T>> make_llama_body(const LlamaShape& shape);

}  // namespace mylos::families
