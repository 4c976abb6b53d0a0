#include "families/llama/llama_shape.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace mylos::families {
namespace {

/// Scales a frequency like _compute_llama3_parameters of transformers.
float llama3_frequency(const RotaryScaling& scaling, float frequency) {
  const auto factor = static_cast<float>(scaling.factor), positions = static_cast<float>(scaling.original_positions);
  const auto low = static_cast<float>(scaling.low_frequency_factor),
             high = static_cast<float>(scaling.high_frequency_factor);
  const float wave = 2.0f * std::numbers::pi_v<float> / frequency;
  if (wave < positions / high) return frequency;
  if (wave > positions / low) return frequency / factor;
  const float smooth = (positions / wave - low) / (high - low);
  return (1.0f - smooth) * frequency / factor + smooth * frequency;
}

float scaled_frequency(const RotaryScaling& scaling, float frequency) {
  switch (scaling.kind) {
    case RotaryScaling::Kind::linear:
      return frequency / static_cast<float>(scaling.factor);
    case RotaryScaling::Kind::llama3:
      return llama3_frequency(scaling, frequency);
    case RotaryScaling::Kind::none:
      break;
  }
  return frequency;
}

}  // namespace

void check_shape(const LlamaShape& shape) {
  require(shape.layers > 0 && shape.hidden > 0 && shape.feed_forward > 0 && shape.vocabulary > 0,
          fmt::format("Llama: {} layers, hidden size {}, feed-forward size {} and {} tokens; each must be at least 1",
                      shape.layers, shape.hidden, shape.feed_forward, shape.vocabulary));
  require(shape.key_value_heads > 0 && shape.heads > 0 && shape.heads % shape.key_value_heads == 0,
          fmt::format("Llama: {} heads are not a multiple of {} key/value heads", shape.heads, shape.key_value_heads));
  require(shape.head_size > 0 && shape.head_size % 2 == 0 && shape.head_size <= largest_rotary_head,
          fmt::format("Llama: head size {} is not an even number from 2 to {}", shape.head_size, largest_rotary_head));
}

AttentionShape attention_shape(const LlamaShape& shape, std::size_t layer) {
  return {.heads = shape.heads,
          .key_value_heads = shape.key_value_heads,
          .head_size = shape.head_size,
          .scale = 1.0f / std::sqrt(static_cast<float>(shape.head_size)),
          .causal = true,
          .window = layer < shape.first_windowed ? no_window : shape.window,
          .kernel = shape.attention};
}

RotaryFrequencies rotary_frequencies(const LlamaShape& shape) {
  RotaryFrequencies frequencies{.pairs = shape.head_size / 2};
  const auto size = static_cast<float>(shape.head_size), theta = static_cast<float>(shape.rope_theta);
  for (std::size_t i = 0; i < frequencies.pairs; ++i) {
    const float exponent = static_cast<float>(2 * i) / size;
    frequencies.radians[i] = scaled_frequency(shape.rope_scaling, 1.0f / std::pow(theta, exponent));
  }
  return frequencies;
}

}  // namespace mylos::families
