#include "families/llama/llama_shapes.hpp"

#include <algorithm>
#include <array>

namespace mylos::families {
namespace {

struct Sizes {
  std::size_t vocabulary, hidden, feed_forward, layers, heads, key_value_heads, positions;
  double rope_theta;
};

LlamaShape decoder(const Sizes& sizes) {
  LlamaShape config;
  config.vocabulary = sizes.vocabulary;
  config.hidden = sizes.hidden;
  config.feed_forward = sizes.feed_forward;
  config.layers = sizes.layers;
  config.heads = sizes.heads;
  config.key_value_heads = sizes.key_value_heads;
  config.head_size = sizes.hidden / sizes.heads;
  config.positions = sizes.positions;
  config.rope_theta = sizes.rope_theta;
  config.rms_norm_epsilon = 1e-5;
  return config;
}

}  // namespace

std::span<const NamedLlama> llama_shapes() {
  static const std::array shapes = {
      NamedLlama{"codellama-7b", decoder({32016, 4096, 11008, 32, 32, 32, 16384, 1e6}), "codellama/CodeLlama-7b-hf"},
      NamedLlama{"codellama-13b", decoder({32016, 5120, 13824, 40, 40, 40, 16384, 1e6}), "codellama/CodeLlama-13b-hf"},
      NamedLlama{"codellama-34b", decoder({32000, 8192, 22016, 48, 64, 8, 16384, 1e6}), "codellama/CodeLlama-34b-hf"},
      NamedLlama{"llama-2-7b", decoder({32000, 4096, 11008, 32, 32, 32, 4096, 1e4}), "meta-llama/Llama-2-7b-hf"},
      NamedLlama{"llama-3-8b", decoder({128256, 4096, 14336, 32, 32, 8, 8192, 5e5}), "meta-llama/Meta-Llama-3-8B"},
      NamedLlama{"tinyllama-1.1b", decoder({32000, 2048, 5632, 22, 32, 4, 2048, 1e4}), "TinyLlama/TinyLlama_v1.1"}};
  return shapes;
}

const NamedLlama* find_llama_shape(std::string_view name) {
  const auto found = std::ranges::find_if(
      llama_shapes(), [&](const NamedLlama& known) { return known.name == name || known.fetched == name; });
  return found == llama_shapes().end() ? nullptr : &*found;
}

}  // namespace mylos::families
