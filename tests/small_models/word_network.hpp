#pragma once

#include "nn/model.hpp"

/// A network that belongs to none of the families: the shortest example of a body.
namespace mylos::small_models {

/// Returns a model of pairs of words: the logits of the next word are E W e, with the embedding e of this word, a
/// square matrix W, and all embeddings E. The head borrows them, so that two units add gradients to one tensor. It
/// reads the same arrays of a batch as a Llama. A sample's loss is the sum over its rows.
std::unique_ptr<nn::Model> make_word_network();

}  // namespace mylos::small_models
