#include "core/random.hpp"

#include <cmath>
#include <numbers>

namespace mylos {
namespace {

__extension__ using Wide = unsigned __int128;  // an extension of GCC and Clang; nvcc supports it on the host

/// Returns a uniform double in (0, 1] with 53 random bits.
double open_uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = ((std::uint64_t{high} << 32) | low) >> 11;
  return (static_cast<double>(bits) + 1.0) * 0x1p-53;
}

}  // namespace

double normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const RandomWords words = philox(seed, index, stream);
  const double radius = std::sqrt(-2.0 * std::log(open_uniform(words.word[0], words.word[1])));
  return radius * std::cos(2.0 * std::numbers::pi * open_uniform(words.word[2], words.word[3]));
}

std::uint64_t uniform_below(std::uint64_t bound, std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const RandomWords words = philox(seed, index, stream);
  const std::uint64_t draw = (std::uint64_t{words.word[1]} << 32) | words.word[0];
  return static_cast<std::uint64_t>((static_cast<Wide>(draw) * bound) >> 64);
}

}  // namespace mylos
