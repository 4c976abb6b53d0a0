#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

/// UTF-8 and code points. All text offsets that Mylos shows or reads count code points, as in Python.
namespace mylos {

/// A half-open range of code points in a text.
struct CodePointRange {
  unsigned begin = 0;
  unsigned end = 0;
  bool operator==(const CodePointRange&) const = default;
};

/// Returns the offset of the first byte that is not well-formed UTF-8 (surrogates and overlong forms are not); nullopt
/// if there is none.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// Throws "<name>: not UTF-8 at byte N" unless `text` is well-formed UTF-8; `name` says where the text comes from.
void ensure_utf8(std::string_view text, std::string_view name);

/// Reads the code point at `position` and advances past it; `text` must be well-formed UTF-8.
char32_t decode_code_point(std::string_view text, std::size_t& position);

/// Appends `code_point` to `text` as UTF-8.
void append_utf8(std::string& text, char32_t code_point);

/// Returns the code points of `text`, which must be well-formed UTF-8.
std::u32string decode_utf8(std::string_view text);

/// Returns `text` as UTF-8.
std::string encode_utf8(std::u32string_view text);

/// Returns the number of code points in `text`, which must be well-formed UTF-8.
std::size_t count_code_points(std::string_view text);

/// Returns the code points [range.begin, range.end) of `text`, with both ends clamped to the text's length.
std::string_view slice_code_points(std::string_view text, CodePointRange range);

/// Return the first or the last character of `text`; an empty text has none.
std::string_view first_character(std::string_view text);
std::string_view last_character(std::string_view text);

/// Returns whether `byte` is a UTF-8 continuation byte.
inline bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace mylos
