#pragma once

#include <cstddef>
#include <span>

/// What BERT's normaliser and pre-tokenizer, as Hugging Face `tokenizers` builds them, think of a code point.
/// `tokenizers` keeps the categories of Unicode 8, decompositions of Unicode 12 and lower-casing of Unicode 17;
/// utf8proc follows the newest Unicode, so short tables here hold the difference (tests compare every code point).
namespace mylos::data {

/// The most code points one code point decomposes to, with room to spare (U+1F82 and kin: 4).
inline constexpr std::size_t max_decomposition = 8;

/// NUL, U+FFFD, and controls, formats and private use, but not tab, line feed and carriage return: deleted.
bool is_removed_by_bert(char32_t c);

/// Becomes one space.
bool is_bert_whitespace(char32_t c);

/// Stands alone where tokenize_chinese_chars is on.
bool is_chinese(char32_t c);

/// A word of its own: punctuation of any script, and the ASCII symbols.
bool is_bert_punctuation(char32_t c);

/// Dropped by strip_accents, after decomposition.
bool is_nonspacing_mark(char32_t c);

/// The canonical combining class, by which decomposition orders marks.
int combining_class(char32_t c);

/// Writes the full canonical decomposition of `c` and returns its length, at least 1; `c` itself where it has none.
std::size_t decompose(char32_t c, std::span<char32_t, max_decomposition> out);

/// Writes what Rust's char::to_lowercase gives and returns its length: 1, or 2 for U+0130.
std::size_t to_lower(char32_t c, std::span<char32_t, 2> out);

}  // namespace mylos::data
