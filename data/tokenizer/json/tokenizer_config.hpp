#pragma once

#include <string>

#include "core/base/files/json.hpp"

namespace mylos::data {

/// Returns `tokenizer_class` without "Fast"; empty if it is absent.
std::string tokenizer_class(const Json& config, const JsonLocation& location);

/// Changes a tokenizer.json as transformers 4.57 does for the tokenizer_config.json beside it, whose content is
/// `config`: added tokens, which of them are special, a space before a text, and the options of BERT's normalizer.
/// Throws at `location` if a field has another type.
void apply_tokenizer_config(const Json& config, const JsonLocation& location, Json& tokenizer);

}  // namespace mylos::data
