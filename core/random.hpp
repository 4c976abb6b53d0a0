#pragma once

#include <Kokkos_Macros.hpp>

#include <cstdint>

/// Counter-based random numbers. Each value is a pure function of (seed, step, sample, position, site, column), so that
/// results do not depend on ranks, threads, micro-batches or the order of evaluation.
namespace mylos {

/// Four 32-bit words of Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC'11).
struct RandomWords {
  std::uint32_t word[4];
};

/// Philox4x32 with 10 rounds, a 128-bit counter and a 64-bit key.
KOKKOS_INLINE_FUNCTION RandomWords philox(std::uint64_t key, std::uint64_t counter_low, std::uint64_t counter_high) {
  auto c0 = static_cast<std::uint32_t>(counter_low), c1 = static_cast<std::uint32_t>(counter_low >> 32);
  auto c2 = static_cast<std::uint32_t>(counter_high), c3 = static_cast<std::uint32_t>(counter_high >> 32);
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0, p1 = std::uint64_t{0xCD9E8D57u} * c2;
    const auto n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Returns a uniform float in [0, 1) with 24 random bits.
KOKKOS_INLINE_FUNCTION float uniform(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// Returns element `index` of the standard normal stream (seed, stream), by Box-Muller in double.
double normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

/// Returns element `index` of the stream (seed, stream) as a uniform integer in [0, bound); the bias is below bound /
/// 2^64.
std::uint64_t uniform_below(std::uint64_t bound, std::uint64_t seed, std::uint64_t stream, std::uint64_t index);

/// The inputs of a dropout mask other than the element itself; the same for all launches.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint32_t site = 0;    ///< index of the dropout layer in the model
  float probability = 0.0f;  ///< probability that an element is dropped; 0 disables dropout

  KOKKOS_INLINE_FUNCTION bool active() const { return probability > 0.0f; }
  /// The factor applied to elements that are kept.
  KOKKOS_INLINE_FUNCTION float scale() const { return 1.0f / (1.0f - probability); }
  /// Elements whose 16-bit draw is below this threshold are dropped, so the probability is accurate to 1/65536.
  KOKKOS_INLINE_FUNCTION std::uint32_t threshold() const {
    return static_cast<std::uint32_t>(probability * 65536.0f + 0.5f);
  }
  /// The key for Philox.
  KOKKOS_INLINE_FUNCTION std::uint64_t philox_key() const { return seed ^ (step * 0x9E3779B97F4A7C15u); }
};

/// The draws of eight consecutive columns, 16 bits each.
struct DropoutDraw {
  RandomWords words;
  KOKKOS_INLINE_FUNCTION std::uint32_t operator[](unsigned column_in_group) const {
    return (words.word[column_in_group >> 1] >> (16u * (column_in_group & 1u))) & 0xffffu;
  }
};

/// Number of columns per draw.
inline constexpr unsigned dropout_group = 8;

/// Draws for columns [8 group, 8 group + 8) of row `position` of `sample` (its position in the global batch). `lane`
/// distinguishes draws for the same row: the head, for attention probabilities.
KOKKOS_INLINE_FUNCTION DropoutDraw dropout_draw(const DropoutKey& key, std::uint32_t sample, std::uint32_t position,
                                                std::uint32_t lane, std::uint32_t group) {
  const std::uint64_t low = (std::uint64_t{sample} << 32) | position;
  const std::uint64_t high = (std::uint64_t{key.site} << 48) | (std::uint64_t{lane & 0xffffu} << 32) | group;
  return {philox(key.philox_key(), low, high)};
}

}  // namespace mylos
