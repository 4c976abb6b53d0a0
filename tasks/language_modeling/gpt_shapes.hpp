#pragma once

#include "nn/gpt/gpt_sizes.hpp"

#include <span>
#include <string>
#include <string_view>

/// GPT-like models for plans only, because others have published their training speed.
namespace mylos::tasks {

struct NamedGpt {
  std::string name;
  nn::GptShape shape;
};

/// Returns mpt-1b, -3b, -7b, -13b, -30b and -70b of MosaicML's llm-foundry, with sequences of 2,048 tokens.
std::span<const NamedGpt> gpt_shapes();

/// Returns the model called `name`, or null if there is none.
const NamedGpt* find_gpt_shape(std::string_view name);

}  // namespace mylos::tasks
