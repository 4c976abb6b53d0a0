#pragma once

#include "data/tokenizer/wordpiece.hpp"

#include <string_view>

/// WordPiece as its definition reads, without tables and short cuts: what `bench tokenize` holds the tokenizer to.
namespace mylos::app {

/// The tokens of `text`, which is UTF-8: the whole text is normalised, cut into words, and each word is looked up piece
/// by piece, the longest first.
data::Tokens plain_tokens(std::string_view text, const data::Vocabulary& vocabulary,
                          const data::TokenizerOptions& options);

}  // namespace mylos::app
