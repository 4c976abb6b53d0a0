#pragma once

#include "data/huggingface/llama_config.hpp"

#include <span>
#include <string>
#include <string_view>

/// Llamas that are known by their sizes alone, for what needs no weights.
namespace mylos::data {

struct NamedLlama {
  std::string name;
  LlamaConfig config;
  std::string fetched;  ///< what `mylos fetch` and --model call one of this shape
};

/// codellama-7b, -13b and -34b (Rozière et al. 2023), llama-2-7b (Touvron et al. 2023), llama-3-8b (Grattafiori et al.
/// 2024) and tinyllama-1.1b (Zhang et al. 2024).
std::span<const NamedLlama> llama_shapes();

/// The one called `name`, or fetched by that name; null where there is none.
const NamedLlama* find_llama_shape(std::string_view name);

}  // namespace mylos::data
