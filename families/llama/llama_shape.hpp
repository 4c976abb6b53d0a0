#pragma once

#include "core/kernels/attention/attention.hpp"
#include "core/kernels/embedding.hpp"
#include "core/kernels/rotary.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

/// The sizes and constants of a Llama (Touvron et al. 2023).
namespace mylos::families {

/// Scaling of the rotary frequencies for contexts longer than in pretraining.
struct RotaryScaling {
  enum class Kind {
    none,
    linear,  ///< all frequencies are divided by `factor`
    llama3,  ///< frequencies of long waves are divided by `factor`, those of short waves are kept; interpolated between
    yarn,    ///< the same, interpolated over pairs, and cosines and sines are scaled (Peng et al. 2023)
  } kind = Kind::none;
  double factor = 1.0;
  // For llama3: wavelengths of at least original_positions / low_frequency_factor positions are long, and those below
  // original_positions / high_frequency_factor are short.
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  std::size_t original_positions = 8192;  ///< also for yarn; 0: the model's positions
  // For yarn: waves that turn at least `fast` times within original_positions are short, those at most `slow` times
  // long.
  double fast = 32.0, slow = 1.0;
  bool truncates = true;          ///< the pairs at which waves become short and long are rounded outwards
  double attention_factor = 0.0;  ///< of cosines and sines; 0: 0.1 ln(factor) + 1

  bool operator==(const RotaryScaling&) const = default;
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
  bool tied = false;                      ///< true if the head uses the token embeddings as its weight
  std::string_view model_type = "llama";  ///< the member of the family (llama_config.hpp)
  bool qkv_bias = false, output_bias = false, mlp_bias = false;  ///< of q, k, v; of o; of the feed-forward layers
  bool head_norms = false;         ///< RMSNorm over each head of queries and keys, before the rotary embedding
  int window = no_window;          ///< rows that a token attends to, with its own
  std::size_t first_windowed = 0;  ///< the first layer that has the window; those below see all rows
  AttentionKernel attention = AttentionKernel::portable;
  std::int32_t padding_token = no_padding;      ///< its embedding gets no gradient, even if a text contains it
  std::optional<std::int32_t> begin_token = 1;  ///< begins each document (BOS), unless nullopt
  std::vector<std::int32_t> end_tokens = {2};   ///< end a generated text; the first ends each document (EOS)

  bool operator==(const LlamaShape&) const = default;
  std::size_t query_columns() const { return heads * head_size; }
  /// Columns of queries, keys and values together.
  std::size_t qkv_columns() const { return (heads + 2 * key_value_heads) * head_size; }
  /// Columns of the heads with norms.
  std::size_t normed_columns() const { return head_norms ? (heads + key_value_heads) * head_size : 0; }
};

/// Checks the sizes. Errors: std::invalid_argument if they do not fit together.
void check_shape(const LlamaShape& shape);

/// Returns the shape of causal attention with grouped queries in a layer.
AttentionShape attention_shape(const LlamaShape& shape, std::size_t layer);
/// The same in the last layer, which has the window if any has.
inline AttentionShape attention_shape(const LlamaShape& shape) { return attention_shape(shape, shape.layers - 1); }

/// Returns the scaled frequencies theta^(-2 i / D), computed in float in the same order as PyTorch's code. At position
/// 100,000 an error of one unit in the last place of a frequency changes the angle by 0.01.
RotaryFrequencies rotary_frequencies(const LlamaShape& shape);

}  // namespace mylos::families
