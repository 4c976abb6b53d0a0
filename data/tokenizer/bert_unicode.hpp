#pragma once

#include <cstddef>
#include <span>

/// Unicode properties as used by the BERT normaliser and pre-tokenizer of Hugging Face `tokenizers`. `tokenizers` uses
/// the categories of Unicode 8, decompositions of Unicode 12 and lower-casing of Unicode 17. utf8proc follows the
/// newest Unicode; short tables here contain the differences (tests compare every code point).
namespace mylos::data {

/// The maximum number of code points in a decomposition (U+FDFA has 18 if compatible forms count; others have 4).
inline constexpr std::size_t max_decomposition = 18;

/// True for characters that are deleted: NUL, U+FFFD, and controls, formats and private use except tab, line feed and
/// carriage return.
bool is_removed_by_bert(char32_t c);

/// True for characters that are replaced by one space.
bool is_bert_whitespace(char32_t c);

/// True for characters that become separate words with tokenize_chinese_chars.
bool is_chinese(char32_t c);

/// True for characters that are words of their own: punctuation of any script, and the ASCII symbols.
bool is_bert_punctuation(char32_t c);

/// True for characters that strip_accents deletes after decomposition.
bool is_nonspacing_mark(char32_t c);

/// True for characters that StripAccents deletes: combining marks of all kinds.
bool is_combining_mark(char32_t c);

/// Returns the canonical combining class, by which decomposition orders marks.
int combining_class(char32_t c);

/// Writes the full canonical decomposition of `c`, or the compatible one, or `c` itself if it has none, and returns its
/// length, at least 1.
std::size_t decompose(char32_t c, std::span<char32_t, max_decomposition> out, bool compatible = false);

/// Returns the character that `first` and `second` compose, or 0 if they compose none.
char32_t compose(char32_t first, char32_t second);

/// Writes the result of Rust's char::to_lowercase and returns its length: 1, or 2 for U+0130.
std::size_t to_lower(char32_t c, std::span<char32_t, 2> out);

/// True for `\w` of Rust's regular expressions.
bool is_word_character(char32_t c);

/// True for Rust's char::is_numeric.
bool is_numeric(char32_t c);

/// Returns whether the text breaks into grapheme clusters between two characters. `state` is 0 before the first.
bool begins_grapheme(char32_t before, char32_t c, int& state);

}  // namespace mylos::data
