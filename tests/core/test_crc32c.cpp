#include "core/crc32c.hpp"

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
