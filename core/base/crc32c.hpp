#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mylos {

/// Returns the CRC-32C (Castagnoli; RFC 3720, appendix B.4) of `bytes`: reflected, polynomial 0x1EDC6F41.
std::uint32_t crc32c(std::span<const std::byte> bytes);

/// Computes the same without the processor's CRC instruction.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes);

}  // namespace mylos
