#include "core/base/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace mylos {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::size_t word_bytes = 8;
using Table = std::array<std::uint32_t, 256>;

/// tables[k][b] is the contribution of byte b followed by k zero bytes. A word takes eight independent look-ups,
/// instead of eight dependent ones with a single table (Kounavis and Berry 2005, "slicing by 8").
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

std::uint32_t take_bytes_by_table(std::uint32_t value, std::span<const std::byte> bytes) {
  std::size_t at = 0;
  for (; at + word_bytes <= bytes.size(); at += word_bytes) value = take_word(value, bytes.data() + at);
  for (; at < bytes.size(); ++at) {
    value = (value >> 8) ^ tables[0][(value ^ static_cast<std::uint32_t>(bytes[at])) & 0xFFu];
  }
  return value;
}

#if defined(__x86_64__)
/// Uses the SSE 4.2 instruction, several times as fast as the tables.
__attribute__((target("sse4.2"))) std::uint32_t take_bytes_by_instruction(std::uint32_t value,
                                                                          std::span<const std::byte> bytes) {
  std::uint64_t sum = value;
  std::size_t at = 0;
  for (; at + word_bytes <= bytes.size(); at += word_bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, word_bytes);
    sum = _mm_crc32_u64(sum, word);
  }
  value = static_cast<std::uint32_t>(sum);
  for (; at < bytes.size(); ++at) value = _mm_crc32_u8(value, static_cast<std::uint8_t>(bytes[at]));
  return value;
}

std::uint32_t take_bytes(std::uint32_t value, std::span<const std::byte> bytes) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction ? take_bytes_by_instruction(value, bytes) : take_bytes_by_table(value, bytes);
}
#else
std::uint32_t take_bytes(std::uint32_t value, std::span<const std::byte> bytes) {
  return take_bytes_by_table(value, bytes);
}
#endif

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) { return ~take_bytes(0xFFFFFFFFu, bytes); }

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) { return ~take_bytes_by_table(0xFFFFFFFFu, bytes); }

}  // namespace mylos
