#include "core/base/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
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

// Instructions that add the next bytes to a checksum, and whether this CPU has them.
#if defined(__x86_64__)
#define MYLOS_CRC_INSTRUCTIONS __attribute__((target("sse4.2")))
bool has_instructions() { return __builtin_cpu_supports("sse4.2") != 0; }
MYLOS_CRC_INSTRUCTIONS inline std::uint64_t add_word(std::uint64_t sum, std::uint64_t word) {
  return _mm_crc32_u64(sum, word);
}
MYLOS_CRC_INSTRUCTIONS inline std::uint32_t add_byte(std::uint32_t sum, std::uint8_t byte) {
  return _mm_crc32_u8(sum, byte);
}
#elif defined(__aarch64__) && defined(__linux__)
#define MYLOS_CRC_INSTRUCTIONS
bool has_instructions() { return (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
inline std::uint64_t add_word(std::uint64_t sum, std::uint64_t word) {
  asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %1" : "+r"(sum) : "r"(word));
  return sum;
}
inline std::uint32_t add_byte(std::uint32_t sum, std::uint8_t byte) {
  asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(sum) : "r"(byte));
  return sum;
}
#endif

#if defined(MYLOS_CRC_INSTRUCTIONS)
/// Several times as fast as the tables.
MYLOS_CRC_INSTRUCTIONS std::uint32_t take_bytes_by_instruction(std::uint32_t value, std::span<const std::byte> bytes) {
  std::uint64_t sum = value;
  std::size_t at = 0;
  for (; at + word_bytes <= bytes.size(); at += word_bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, word_bytes);
    sum = add_word(sum, word);
  }
  value = static_cast<std::uint32_t>(sum);
  for (; at < bytes.size(); ++at) value = add_byte(value, static_cast<std::uint8_t>(bytes[at]));
  return value;
}

std::uint32_t take_bytes(std::uint32_t value, std::span<const std::byte> bytes) {
  static const bool by_instruction = has_instructions();
  return by_instruction ? take_bytes_by_instruction(value, bytes) : take_bytes_by_table(value, bytes);
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
