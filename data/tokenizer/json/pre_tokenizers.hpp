#pragma once

#include <functional>

#include "core/base/files/json.hpp"
#include "data/tokenizer/json/aligned_text.hpp"

namespace mylos::data {

/// A pre-tokenizer of a tokenizer.json: cuts and changes the pieces of a text that are no added tokens. Threads can use
/// the same object.
using PreTokenizer = std::function<void(PiecedText& text)>;

/// Reads `pre_tokenizer`; null is one that does nothing. Throws at `location` if its type is not supported.
PreTokenizer read_pre_tokenizer(const Json& json, const JsonLocation& location);

}  // namespace mylos::data
