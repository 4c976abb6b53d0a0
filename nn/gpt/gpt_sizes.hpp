#pragma once

#include "nn/model.hpp"

#include <cstddef>
#include <memory>

/// GPT-like decoders (Radford et al. 2019) by their sizes: for plans, which compute nothing.
namespace mylos::nn {

/// LayerNorm before each half of a layer, GELU, no biases, a head tied to the token embeddings.
struct GptShape {
  std::size_t vocabulary = 0;    ///< V
  std::size_t hidden = 0;        ///< H
  std::size_t layers = 0;        ///< L
  std::size_t heads = 0;         ///< A, divides H
  std::size_t feed_forward = 0;  ///< F
  std::size_t positions = 0;     ///< the longest sequence; positions are not learned
};

/// A model that can be planned: its table, its memory as layers of other models here would take it, its products and
/// operations. `train` and `predict` throw std::logic_error.
/// Errors: std::invalid_argument for a shape whose parts do not fit.
std::unique_ptr<Model> make_gpt_sizes(const GptShape& shape, Precision precision);

}  // namespace mylos::nn
