#include "core/base/crc32c.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string_view>
#include <vector>

namespace mylos {
namespace {

std::uint32_t of_text(std::string_view text) { return crc32c(std::as_bytes(std::span(text.data(), text.size()))); }

// RFC 3720, appendix B.4, and the check value of the CRC catalogues.
TEST(Crc32c, EqualsThePublishedValues) {
  EXPECT_EQ(of_text("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0x00})), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xFF})), 0x62A8AB43u);
  std::vector<unsigned char> ascending(32);
  std::iota(ascending.begin(), ascending.end(), static_cast<unsigned char>(0));
  EXPECT_EQ(crc32c(std::as_bytes(std::span(ascending))), 0x46DD794Eu);
}

/// Computes the CRC by its definition, one bit at a time.
std::uint32_t bit_by_bit(std::span<const std::byte> bytes) {
  std::uint32_t value = 0xFFFFFFFFu;
  for (const std::byte byte : bytes) {
    value ^= static_cast<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1u) != 0 ? 0x82F63B78u : 0u);
  }
  return ~value;
}

TEST(Crc32c, EveryLengthAndPlaceIsByTheDefinition) {
  std::vector<std::byte> bytes(80);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(37 * i * i + 11);
  for (std::size_t first = 0; first < 9; ++first) {
    for (std::size_t length = 0; length <= 70; ++length) {
      const auto part = std::span<const std::byte>(bytes).subspan(first, length);
      ASSERT_EQ(crc32c(part), bit_by_bit(part)) << first << " " << length;
      ASSERT_EQ(crc32c_by_table(part), bit_by_bit(part)) << first << " " << length;
    }
  }
}

TEST(Crc32c, OfNothingIsZero) { EXPECT_EQ(crc32c({}), 0u); }

TEST(Crc32c, SeesEveryFlippedBit) {
  const std::string_view text = "mylos";
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string flipped(text);
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(of_text(flipped), of_text(text)) << "bit " << bit;
  }
}

}  // namespace
}  // namespace mylos
