#include "core/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace mylos {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::size_t word_bytes = 8;
using Table = std::array<std::uint32_t, 256>;

/// tables[k][b]: what byte b contributes once k bytes of zero have followed it. Eight look-ups that do not wait for
/// each other take a word, where one table takes eight that do (Kounavis and Berry 2005, "slicing by 8").
constexpr std::array<Table, word_bytes> make_tables() {
  constexpr std::uint32_t reflected_polynomial = 0x82F63B78u;
  std::array<Table, word_bytes> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1u) != 0 ? reflected_polynomial : 0u);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < word_bytes; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t value = tables[k - 1][byte];
      tables[k][byte] = (value >> 8) ^ tables[0][value & 0xFFu];
    }
  }
  return tables;
}

constexpr std::array<Table, word_bytes> tables = make_tables();

std::uint32_t take_word(std::uint32_t value, const std::byte* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, word_bytes);
  word ^= value;
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < word_bytes; ++i) sum ^= tables[word_bytes - 1 - i][(word >> (8 * i)) & 0xFFu];
  return sum;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  std::uint32_t value = 0xFFFFFFFFu;
  std::size_t at = 0;
  for (; at + word_bytes <= bytes.size(); at += word_bytes) value = take_word(value, bytes.data() + at);
  for (; at < bytes.size(); ++at) {
    value = (value >> 8) ^ tables[0][(value ^ static_cast<std::uint32_t>(bytes[at])) & 0xFFu];
  }
  return ~value;
}

}  // namespace mylos
