#pragma once

#include "nn/gpt/gpt_sizes.hpp"

#include <span>
#include <string>
#include <string_view>

/// GPT-like models that only plans know, because others have published how fast they train.
namespace mylos::tasks {

struct NamedGpt {
  std::string name;
  nn::GptShape shape;
};

/// mpt-1b, -3b, -7b, -13b, -30b and -70b: those of MosaicML's llm-foundry, with sequences of 2,048 tokens.
std::span<const NamedGpt> gpt_shapes();

/// The one called `name`; null where there is none.
const NamedGpt* find_gpt_shape(std::string_view name);

}  // namespace mylos::tasks
