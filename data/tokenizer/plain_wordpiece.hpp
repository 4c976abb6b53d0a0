#pragma once

#include "data/tokenizer/wordpiece.hpp"

#include <string_view>

/// A literal implementation of WordPiece, without tables or shortcuts. It is slow and serves only as a reference: tests
/// and `bench tokenize` compare WordPieceTokenizer with it.
namespace mylos::data {

/// Tokenizes `text`, which is UTF-8: normalises all of it, splits it into words, and looks up each word piece by piece,
/// the longest first.
Tokens plain_tokens(std::string_view text, const Vocabulary& vocabulary, const TokenizerOptions& options);

}  // namespace mylos::data
