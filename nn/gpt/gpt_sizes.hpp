#pragma once

#include "nn/model.hpp"

#include <cstddef>
#include <memory>

/// GPT-like decoders (Radford et al. 2019) for planning: sizes only, no computation.
namespace mylos::nn {

/// A decoder with LayerNorm before each half of a layer, GELU, no biases, and a head tied to the token embeddings.
struct GptShape {
  std::size_t vocabulary = 0;    ///< V
  std::size_t hidden = 0;        ///< H
  std::size_t layers = 0;        ///< L
  std::size_t heads = 0;         ///< A, divides H
  std::size_t feed_forward = 0;  ///< F
  std::size_t positions = 0;     ///< the longest sequence; there are no learned position embeddings
};

/// Returns a model for planning. It has a parameter table, a memory plan that follows the layers of the other models
/// here, products and operation counts. `train` and `predict` throw std::logic_error.
/// Errors: std::invalid_argument if the sizes in `shape` do not fit together.
std::unique_ptr<Model> make_gpt_sizes(const GptShape& shape, Precision precision);

}  // namespace mylos::nn
