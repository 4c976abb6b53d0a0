#pragma once

#include "data/tokenizer/wordpiece.hpp"

#include <string_view>

/// WordPiece as its definition reads, without tables and short cuts. It is slow, and only a twin for checks: tests and
/// `bench tokenize` compare WordPieceTokenizer with it.
namespace mylos::data {

/// The tokens of `text`, which is UTF-8: the whole text is normalised, cut into words, and each word is looked up piece
/// by piece, the longest first.
Tokens plain_tokens(std::string_view text, const Vocabulary& vocabulary, const TokenizerOptions& options);

}  // namespace mylos::data
