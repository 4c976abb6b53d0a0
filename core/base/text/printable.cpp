#include "core/base/text/printable.hpp"

#include "core/base/text/unicode.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos {
namespace {

constexpr std::size_t longest_name = 80;

/// Returns the number of bytes of the first character of `text`, which must not be empty; 1 if it is not valid UTF-8.
/// Overlong forms are invalid: some decoders read e0 82 9b as U+009B.
std::size_t character_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t bytes = lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
  if (bytes > text.size() || !std::ranges::all_of(text.substr(1, bytes - 1), is_continuation)) return 1;
  const int second = bytes > 1 ? static_cast<unsigned char>(text[1]) : 0;
  const bool is_too_long = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  return is_too_long ? 1 : bytes;
}

/// Returns whether a character is a control character: C0, DEL, or C1, either as UTF-8 or as a single byte, which
/// non-UTF-8 terminals obey.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first < 0x20 || (first >= 0x7f && first < 0xa0);
  return character.size() == 2 && first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

/// Calls `take` with each character of `text`.
template <class Take>
void for_each_character(std::string_view text, const Take& take) {
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    take(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  for_each_character(text.substr(0, longest_name), [&](std::string_view character) {
    if (!is_control(character)) {
      result += character;
      return;
    }
    for (const char byte : character) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  });
  if (text.size() > longest_name) result += "...";
  return result;
}

std::string without_controls(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for_each_character(text, [&](std::string_view character) {
    if (!is_control(character) || character == "\n" || character == "\t") result += character;
  });
  return result;
}

std::string json_without_controls(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for_each_character(text, [&](std::string_view character) {
    const auto last = static_cast<unsigned char>(character.back());
    if (!is_control(character) || last < 0x20) {
      result += character;
    } else {
      result += fmt::format("\\u{:04x}", last);  // the last byte of C1 in UTF-8 equals its code point
    }
  });
  return result;
}

std::string on_one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

}  // namespace mylos
