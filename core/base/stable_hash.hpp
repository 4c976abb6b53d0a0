#pragma once

#include <cstdint>
#include <string_view>

namespace mylos {

/// FNV-1a: the same on all machines and compilers, unlike std::hash.
inline std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash;
}

}  // namespace mylos
