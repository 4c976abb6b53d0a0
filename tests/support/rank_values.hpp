#pragma once

#include "core/random.hpp"

#include <cstddef>
#include <cstdint>

/// Values for arrays of ranks in tests. They take a tenth of the time of philox() or std::sin() in a build without
/// optimisation.
namespace mylos::tests {

/// Returns two words that depend on all bits of the arguments, mixed as by splitmix64 (Steele, Lea and Flood, OOPSLA
/// 2014). Words 2 and 3 are zero.
inline RandomWords mixed_words(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high) {
  std::uint64_t bits =
      (key * 0xD1342543DE82EF95u + counter_high) * 0x2545F4914F6CDD1Du + counter_low * 0x9E3779B97F4A7C15u;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
  bits ^= bits >> 31;
  return {{static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32), 0, 0}};
}

/// Returns a value with 24 significant bits. Magnitudes differ between ranks, so that another order of summation
/// changes bits.
inline float value_of_rank(std::size_t rank, std::size_t i) {
  const auto word = static_cast<std::int32_t>(mixed_words(1, i, rank).word[0]) >> 8;
  return static_cast<float>(word) * 0x1p-23f * static_cast<float>(1u << (rank % 12));
}

}  // namespace mylos::tests
