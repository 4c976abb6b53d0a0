#pragma once

#include "nn/model.hpp"
#include "tests/small_models/decoder_layer.hpp"

#include <memory>

/// A decoder that predicts the next word: token and learned position embeddings, layers, RMSNorm, and logits from tied
/// token embeddings (Press, Wolf 2017). Two units therefore read the token embeddings and add gradients to them.
namespace mylos::small_models {

/// Names of the arrays that it reads from a batch besides the positions. The first must have been passed to
/// Batch::set_indices, and Batch::group_positions called for training.
namespace words {
inline constexpr const char* tokens = "tokens";  ///< (T) in [0, V)
inline constexpr const char* labels = "labels";  ///< (T) the following word; negative = ignored
}  // namespace words

/// Creates the model in float. `predict` returns (T, 1), the most likely next word. A sample's loss is the sum over its
/// rows. If `chunk` is not 0, it is the number of rows whose logits are held at once.
std::unique_ptr<nn::Model> make_causal_decoder(const DecoderShape& shape, std::size_t chunk = 0);

}  // namespace mylos::small_models
