#pragma once

#include <functional>

#include "core/base/files/json.hpp"
#include "data/tokenizer/json/aligned_text.hpp"

namespace mylos::data {

/// A normalizer of a tokenizer.json: changes a text. Threads can use the same object.
using Normalizer = std::function<void(AlignedText& text)>;

/// Reads `normalizer`; null is one that does nothing. Throws at `location` if its type is not supported.
Normalizer read_normalizer(const Json& json, const JsonLocation& location);

}  // namespace mylos::data
