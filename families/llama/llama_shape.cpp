#include "families/llama/llama_shape.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
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

/// Scales the frequency of pair `pair` like _compute_yarn_parameters of transformers.
float yarn_frequency(const LlamaShape& shape, std::size_t pair, float frequency) {
  const RotaryScaling& scaling = shape.rope_scaling;
  const auto size = static_cast<double>(shape.head_size);
  const std::size_t positions = scaling.original_positions > 0 ? scaling.original_positions : shape.positions;
  const auto pair_of = [&](double turns) {
    return size * std::log(static_cast<double>(positions) / (2.0 * std::numbers::pi * turns)) /
           (2.0 * std::log(shape.rope_theta));
  };
  double low = pair_of(scaling.fast), high = pair_of(scaling.slow);
  if (scaling.truncates) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, size - 1.0);
  const double width = high == low ? 1e-3 : high - low;
  const auto ramp = static_cast<float>(std::clamp((static_cast<double>(pair) - low) / width, 0.0, 1.0));
  return frequency / static_cast<float>(scaling.factor) * ramp + frequency * (1.0f - ramp);
}

float scaled_frequency(const LlamaShape& shape, std::size_t pair, float frequency) {
  const RotaryScaling& scaling = shape.rope_scaling;
  switch (scaling.kind) {
    case RotaryScaling::Kind::linear:
      return frequency / static_cast<float>(scaling.factor);
    case RotaryScaling::Kind::llama3:
      return llama3_frequency(scaling, frequency);
    case RotaryScaling::Kind::yarn:
      return yarn_frequency(shape, pair, frequency);
    case RotaryScaling::Kind::none:
      break;
  }
  return frequency;
}

/// Returns the factor of cosines and sines.
float rotary_scale(const RotaryScaling& scaling) {
  if (scaling.kind != RotaryScaling::Kind::yarn) return 1.0f;
  if (scaling.attention_factor > 0.0) return static_cast<float>(scaling.attention_factor);
  return static_cast<float>(scaling.factor > 1.0 ? 0.1 * std::log(scaling.factor) + 1.0 : 1.0);
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
  RotaryFrequencies frequencies{.pairs = shape.head_size / 2, .scale = rotary_scale(shape.rope_scaling)};
  const auto size = static_cast<float>(shape.head_size), theta = static_cast<float>(shape.rope_theta);
  for (std::size_t i = 0; i < frequencies.pairs; ++i) {
    const float exponent = static_cast<float>(2 * i) / size;
    frequencies.radians[i] = scaled_frequency(shape, i, 1.0f / std::pow(theta, exponent));
  }
  return frequencies;
}

}  // namespace mylos::families
