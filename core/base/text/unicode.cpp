#include "core/base/text/unicode.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/base/error.hpp"

namespace mylos {
namespace {

/// Returns the length of the sequence that starts with a valid first byte.
std::size_t sequence_length(char first) {
  const auto byte = static_cast<unsigned char>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// Skips whole 8-byte words of ASCII, several times as fast as byte by byte; most text is ASCII.
std::size_t skip_ascii(std::string_view text, std::size_t position) {
  std::uint64_t word = 0;
  while (position + sizeof word <= text.size()) {
    std::memcpy(&word, text.data() + position, sizeof word);
    if ((word & 0x8080808080808080ULL) != 0) break;
    position += sizeof word;
  }
  return position;
}

/// Returns the byte position of code point `count`, counted from byte `position`; the end of the text if it has fewer.
std::size_t advance(std::string_view text, std::size_t position, std::size_t count) {
  while (count > 0 && position < text.size()) {
    position += sequence_length(text[position]);
    --count;
  }
  return std::min(position, text.size());
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  std::size_t position = skip_ascii(text, 0);
  while (position < text.size()) {
    if (static_cast<unsigned char>(text[position]) < 0x80) {
      position = skip_ascii(text, position + 1);
      continue;
    }
    utf8proc_int32_t code_point = 0;
    const auto rest = static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size() - position, 4));
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + position);
    const utf8proc_ssize_t length = utf8proc_iterate(bytes, rest, &code_point);
    if (length < 0) return position;
    position += static_cast<std::size_t>(length);
  }
  return std::nullopt;
}

void ensure_utf8(std::string_view text, std::string_view name) {
  const auto bad = first_invalid_utf8(text);
  if (bad) fail(fmt::format("{}: not UTF-8 at byte {}; convert it to UTF-8", name, *bad));
}

char32_t decode_code_point(std::string_view text, std::size_t& position) {
  static constexpr unsigned char lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  const std::size_t length = sequence_length(text[position]);
  char32_t code_point = static_cast<unsigned char>(text[position]) & lead_bits[length];
  for (std::size_t i = 1; i < length; ++i) {
    code_point = (code_point << 6U) | (static_cast<unsigned char>(text[position + i]) & 0x3FU);
  }
  position += length;
  return code_point;
}

void append_utf8(std::string& text, char32_t code_point) {
  if (code_point < 0x80) {
    text.push_back(static_cast<char>(code_point));
    return;
  }
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code_point), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(length));
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string decoded;
  decoded.reserve(text.size());
  for (std::size_t position = 0; position < text.size();) decoded.push_back(decode_code_point(text, position));
  return decoded;
}

std::string encode_utf8(std::u32string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char32_t code_point : text) append_utf8(encoded, code_point);
  return encoded;
}

std::size_t count_code_points(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

std::string_view slice_code_points(std::string_view text, CodePointRange range) {
  const std::size_t begin = advance(text, 0, range.begin);
  const std::size_t end = advance(text, begin, range.end > range.begin ? range.end - range.begin : 0);
  return text.substr(begin, end - begin);
}

std::string_view first_character(std::string_view text) { return slice_code_points(text, {0, 1}); }

std::string_view last_character(std::string_view text) {
  std::size_t begin = text.empty() ? 0 : text.size() - 1;
  while (begin > 0 && is_continuation(text[begin])) --begin;
  return text.substr(begin);
}

}  // namespace mylos
