#pragma once

#include "core/kernels/attention.hpp"
#include "core/kernels/embedding.hpp"
#include "core/kernels/rotary.hpp"

/// The sizes and constants of a Llama (Touvron et al. 2023).
namespace mylos::nn {

/// How the frequencies of rotary embeddings are changed for contexts longer than those of the first training.
struct RotaryScaling {
  enum class Kind {
    none,
    linear,  ///< all are divided by `factor`
    llama3,  ///< long waves are divided by `factor`, short ones stay, those in between are interpolated
  } kind = Kind::none;
  double factor = 1.0;
  // Of llama3: a wave is long from original_positions / low_frequency_factor on, and short below
  // original_positions / high_frequency_factor.
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  std::size_t original_positions = 8192;
};

struct LlamaShape {
  std::size_t vocabulary = 0;       ///< V
  std::size_t hidden = 0;           ///< H
  std::size_t layers = 0;           ///< L
  std::size_t heads = 0;            ///< A
  std::size_t key_value_heads = 0;  ///< KV, divides A
  std::size_t head_size = 0;        ///< D, even; H / A in most models
  std::size_t feed_forward = 0;     ///< F
  std::size_t positions = 0;        ///< the longest sequence
  double rope_theta = 10000.0;
  RotaryScaling rope_scaling = {};
  float rms_norm_epsilon = 1e-6f;
  float initializer_range = 0.02f;
  bool tied = false;  ///< the head multiplies by the token embeddings
  AttentionKernel attention = AttentionKernel::portable;
  std::int32_t padding_token = no_padding;  ///< its embedding gets no gradient, even where a text contains it

  std::size_t query_columns() const { return heads * head_size; }
  /// Columns of queries, keys and values together.
  std::size_t qkv_columns() const { return (heads + 2 * key_value_heads) * head_size; }
};

/// Errors: std::invalid_argument for a shape whose parts do not fit.
void check_shape(const LlamaShape& shape);

/// Causal, with grouped queries.
AttentionShape attention_shape(const LlamaShape& shape);

/// theta^(-2 i / D), scaled. Computed in float in the order of PyTorch's code: at position 100,000 a unit in the last
/// place of a frequency turns by 0.01.
RotaryFrequencies rotary_frequencies(const LlamaShape& shape);

}  // namespace mylos::nn
