#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mylos {

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of `bytes`: reflected, polynomial 0x1EDC6F41.
std::uint32_t crc32c(std::span<const std::byte> bytes);

/// The same where the processor has no instruction for it.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes);

}  // namespace mylos
