#pragma once

#include "core/kernels/attention/attention.hpp"
#include "core/kernels/embedding.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mylos::families {

/// The sizes and constants of a BERT encoder.
struct BertShape {
  std::size_t vocabulary = 0;    ///< V
  std::size_t hidden = 0;        ///< H
  std::size_t layers = 0;        ///< L
  std::size_t heads = 0;         ///< A
  std::size_t feed_forward = 0;  ///< F
  std::size_t positions = 0;     ///< the longest sequence
  std::size_t token_types = 0;
  float hidden_dropout = 0.1f;
  float attention_dropout = 0.1f;
  float layer_norm_epsilon = 1e-12f;
  float initializer_range = 0.02f;
  AttentionKernel attention = AttentionKernel::portable;
  std::string_view prefix = "bert";         ///< of the tensors' names
  std::int32_t padding_token = no_padding;  ///< its embedding gets no gradient, even if a text contains it

  bool operator==(const BertShape&) const = default;
};

/// Returns the shape of the encoder's attention.
AttentionShape attention_shape(const BertShape& shape);

}  // namespace mylos::families
