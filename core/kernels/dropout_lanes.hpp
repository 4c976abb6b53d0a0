#pragma once

#include "core/kernels/team.hpp"
#include "core/random.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

/// Many draws of `dropout_draw` at once, in loops that vectorise: made one at a time, draws would cost more than the
/// dropout itself.
namespace mylos {

/// Storage for a 32-bit word of Philox, of the type in which multiplications vectorise best: AVX-512 multiplies whole
/// 64-bit elements, AVX2 has only widening products.
#if defined(__AVX512DQ__) && !defined(MYLOS_DEVICE_BUILD)
using DrawWord = std::uint64_t;
#else
using DrawWord = std::uint32_t;
#endif

/// Philox's counters of `count` draws, and the resulting words.
template <int count>
struct DrawLanes {
  DrawWord word[4][count];

  /// Sets the counter of one draw; the arguments are those of `dropout_draw`.
  KOKKOS_FORCEINLINE_FUNCTION void set(int i, const DropoutKey& key, std::uint32_t sample, std::uint32_t position,
                                       std::uint32_t lane, std::uint32_t group) {
    word[0][i] = position;
    word[1][i] = sample;
    word[2][i] = group;
    word[3][i] = (key.site << 16) | (lane & 0xffffu);
  }

  /// Applies `philox` to all draws. The loop over rounds is outside, so that the loop over lanes vectorises.
  KOKKOS_FORCEINLINE_FUNCTION void draw(std::uint64_t key) {
    auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      MYLOS_ROLLED
      for (int i = 0; i < count; ++i) {
        const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * word[0][i], p1 = std::uint64_t{0xCD9E8D57u} * word[2][i];
        word[0][i] = static_cast<DrawWord>(p1 >> 32) ^ word[1][i] ^ k0;
        word[2][i] = static_cast<DrawWord>(p0 >> 32) ^ word[3][i] ^ k1;
        word[1][i] = static_cast<std::uint32_t>(p1);
        word[3][i] = static_cast<std::uint32_t>(p0);
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  }

  /// Stores the four words of each draw consecutively: to (count, 4).
  KOKKOS_FORCEINLINE_FUNCTION void store(std::uint32_t* KOKKOS_RESTRICT to) const {
    MYLOS_ROLLED
    for (int i = 0; i < count; ++i) {
      for (int w = 0; w < 4; ++w) to[4 * i + w] = static_cast<std::uint32_t>(word[w][i]);
    }
  }
};

/// Returns the 16-bit draw of column `i`, counted from the first stored one. It is a 16-bit load, because halves of
/// words would have to be interleaved.
KOKKOS_FORCEINLINE_FUNCTION std::uint32_t stored_draw(const std::uint32_t* words, std::size_t i) {
  static_assert(std::endian::native == std::endian::little, "the lower half of a word is the earlier column's");
  std::uint16_t draw;
  std::memcpy(&draw, reinterpret_cast<const unsigned char*>(words) + 2 * i, sizeof draw);
  return draw;
}

}  // namespace mylos
