#pragma once

#include "families/llama/llama_config.hpp"

#include <span>
#include <string>
#include <string_view>

/// Llama models known by their sizes alone, for commands that need no weights.
namespace mylos::families {

struct NamedLlama {
  std::string name;
  LlamaShape config;
  std::string fetched;  ///< name of a model of this shape for `mylos fetch` and --model
};

/// Returns codellama-7b, -13b and -34b (Rozière et al. 2023), llama-2-7b (Touvron et al. 2023), llama-3-8b (Grattafiori
/// et al. 2024) and tinyllama-1.1b (Zhang et al. 2024).
std::span<const NamedLlama> llama_shapes();

/// Returns the shape called `name`, or fetched by that name. Null if there is none.
const NamedLlama* find_llama_shape(std::string_view name);

}  // namespace mylos::families
