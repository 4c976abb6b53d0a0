#pragma once

#include "data/tokenizer/wordpiece.hpp"

namespace mylos::tests {

/// Cuts text into printable ASCII characters and a few longer tokens.
data::WordPieceTokenizer small_tokenizer(bool lower_case);

}  // namespace mylos::tests
