#pragma once

#include "core/base/files/json.hpp"

namespace mylos::data {

/// Changes a tokenizer.json as transformers 4.57 does for the tokenizer_config.json beside it, whose content is
/// `config`: added tokens, a space before a text, and the options of BERT's normalizer. Throws at `location` if a field
/// has another type.
void apply_tokenizer_config(const Json& config, const JsonLocation& location, Json& tokenizer);

}  // namespace mylos::data
