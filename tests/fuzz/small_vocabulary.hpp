#pragma once

#include "data/tokenizer/json/wordpiece.hpp"

namespace mylos::tests {

/// Returns a tokenizer for printable ASCII characters and a few longer tokens.
data::WordPieceTokenizer small_tokenizer(bool lower_case);

}  // namespace mylos::tests
