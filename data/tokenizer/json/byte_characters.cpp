#include "data/tokenizer/json/byte_characters.hpp"

#include <array>
#include <charconv>

namespace mylos::data {
namespace {

/// Visible characters of Latin-1 stand for themselves, and U+0100 and those after it for the other bytes in order.
constexpr std::array<char32_t, 256> characters = [] {
  std::array<char32_t, 256> table{};
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool is_visible = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    table[byte] = is_visible ? byte : next++;
  }
  return table;
}();

constexpr std::array<short, 0x144> bytes_of = [] {
  std::array<short, 0x144> table{};
  for (short& byte : table) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte) table[characters[byte]] = static_cast<short>(byte);
  return table;
}();

}  // namespace

void append_byte_characters(std::string_view text, std::span<const CodePointRange> origins, AlignedText& out) {
  const std::size_t begin = out.text.size();
  out.text.resize(begin + 2 * text.size());
  out.origins.resize(begin + 2 * text.size());
  std::size_t end = begin;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char32_t c = characters[static_cast<unsigned char>(text[i])];
    out.origins[end] = origins[i];
    if (c >= 0x80) {
      out.text[end++] = static_cast<char>(0xC0U | (c >> 6U));
      out.origins[end] = origins[i];
    }
    out.text[end++] = static_cast<char>(c >= 0x80 ? 0x80U | (c & 0x3FU) : c);
  }
  out.text.resize(end);
  out.origins.resize(end);
}

std::optional<unsigned char> byte_of_character(char32_t c) {
  if (c >= bytes_of.size() || bytes_of[c] < 0) return std::nullopt;
  return static_cast<unsigned char>(bytes_of[c]);
}

std::optional<unsigned char> byte_of_name(std::string_view name) {
  if (name.size() != 6 || !name.starts_with("<0x") || name.back() != '>') return std::nullopt;
  unsigned byte = 0;
  const char* digits = name.data() + 3;
  const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
  if (error != std::errc() || end != digits + 2) return std::nullopt;
  return static_cast<unsigned char>(byte);
}

void append_token_bytes(std::string_view token, std::string& bytes) {
  const std::size_t before = bytes.size();
  for (std::size_t position = 0; position < token.size();) {
    const auto byte = byte_of_character(decode_code_point(token, position));
    if (!byte) {
      bytes.replace(before, bytes.size() - before, token);
      return;
    }
    bytes.push_back(static_cast<char>(*byte));
  }
}

}  // namespace mylos::data
