#pragma once

#include "nn/model.hpp"
#include "tests/small_models/decoder_layer.hpp"

#include <memory>

/// A decoder that predicts the next word: token and learned position embeddings, layers, RMSNorm, and logits by the
/// token embeddings themselves (Press, Wolf 2017), which two units therefore read and give gradients to.
namespace mylos::small_models {

/// Names of the arrays it reads from a batch; the first two were given to Batch::set_indices.
namespace words {
inline constexpr const char* tokens = "tokens";        ///< (T) in [0, V)
inline constexpr const char* positions = "positions";  ///< (T) in [0, positions)
inline constexpr const char* labels = "labels";        ///< (T) the word that follows; negative = ignored
}  // namespace words

/// The model in float; outputs of `predict` are (T, 1): the likeliest next word. A sample's loss is the sum over its
/// rows. `chunk`, where not 0, is how many rows' logits are held at once.
std::unique_ptr<nn::Model> make_causal_decoder(const DecoderShape& shape, std::size_t chunk = 0);

}  // namespace mylos::small_models
