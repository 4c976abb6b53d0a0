#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/files/json.hpp"
#include "data/tokenizer/tokenizer.hpp"

namespace mylos::data {

/// A part of what a model reads: special tokens, or a text if `ids` is empty.
struct TemplatePart {
  std::vector<TokenId> ids;
  int sequence = 0;  ///< of a text: 0 is the first of a pair, 1 the second
  std::int32_t type = 0;
  bool operator==(const TemplatePart&) const = default;
};
using Template = std::vector<TemplatePart>;

/// Takes the white space at the ends of a token out of its offsets. `adds_space`: the first token may begin with a
/// space that is not in the text.
struct OffsetTrim {
  bool adds_space = true;
};

/// The post-processor of a tokenizer.json.
struct PostProcessor {
  std::vector<OffsetTrim> trims = {};
  std::optional<Template> single;     ///< how one text is read; without, by itself
  std::optional<Template> pair = {};  ///< how two texts are read
};

/// Reads `post_processor`; null is one that does nothing. Throws at `location` if its type is not supported.
PostProcessor read_post_processor(const Json& json, const JsonLocation& location);

/// Returns whether a template of two texts lays them out like this.
bool has_layout(const Template& pair, const PairLayout& layout);

/// Changes the offsets of the tokens of a text. `texts` are those of the tokens.
void trim_offsets(const OffsetTrim& trim, std::span<const std::string_view> texts, Tokens& tokens);

}  // namespace mylos::data
