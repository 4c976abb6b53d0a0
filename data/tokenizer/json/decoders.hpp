#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/files/json.hpp"

namespace mylos::data {

/// A decoder of a tokenizer.json: changes the texts of tokens, which are joined in the end. Threads can use the same
/// object.
using Decoder = std::function<void(std::vector<std::string>& tokens)>;

/// Reads `decoder`; null is one that writes spaces between tokens. Throws at `location` if its type is not supported.
Decoder read_decoder(const Json& json, const JsonLocation& location);

}  // namespace mylos::data
