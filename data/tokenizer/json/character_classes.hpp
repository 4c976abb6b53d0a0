#pragma once

/// Classes of characters as `tokenizers` has them beyond those of BERT (bert_unicode.hpp). Characters assigned after
/// the release of Unicode that utf8proc knows are in none of them.
namespace mylos::data {

/// True for `\w` of Rust's regular expressions.
bool is_word_character(char32_t c);

/// True for Rust's char::is_numeric.
bool is_numeric(char32_t c);

/// Returns whether the text breaks into grapheme clusters between two characters. `state` is 0 before the first.
bool begins_grapheme(char32_t before, char32_t c, int& state);

}  // namespace mylos::data
