#include "core/crc32c.hpp"

#include <array>

namespace mylos {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  constexpr std::uint32_t reflected_polynomial = 0x82F63B78u;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1u) != 0 ? reflected_polynomial : 0u);
    table[byte] = value;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> table = make_table();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  std::uint32_t value = 0xFFFFFFFFu;
  for (const std::byte byte : bytes) value = (value >> 8) ^ table[(value ^ static_cast<std::uint32_t>(byte)) & 0xFFu];
  return ~value;
}

}  // namespace mylos
