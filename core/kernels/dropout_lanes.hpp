#pragma once

#include "core/kernels/team.hpp"
#include "core/random.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#if defined(__AVX2__) && !defined(MYLOS_DEVICE_BUILD)
#define MYLOS_DRAWS_IN_REGISTERS
#include <immintrin.h>
#endif

/// Many draws of `dropout_draw` at once, in loops that vectorise: made one at a time, draws would cost more than the
/// dropout itself.
namespace mylos {

/// Storage for a 32-bit word of Philox. With AVX2, the lower half of a 64-bit element, which is what its widening
/// product reads; compilers generate that instruction only from intrinsics.
#if defined(MYLOS_DRAWS_IN_REGISTERS)
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

#if defined(MYLOS_DRAWS_IN_REGISTERS)
#if defined(__AVX512F__)
  static constexpr int registers = 32;  ///< of the CPU
  using Register = std::uint64_t __attribute__((vector_size(64)));
#else
  static constexpr int registers = 16;
  using Register = std::uint64_t __attribute__((vector_size(32)));
#endif
  static constexpr int width = sizeof(Register) / sizeof(std::uint64_t);
  static_assert(count % width == 0);

  /// Multiplies lower halves. GCC 12 warns of uninitialised values in the wider intrinsic without a mask.
  KOKKOS_FORCEINLINE_FUNCTION static Register product(std::uint64_t factor, const Register& of) {
#if defined(__AVX512F__)
    return (Register)_mm512_maskz_mul_epu32(0xff, _mm512_set1_epi64(static_cast<std::int64_t>(factor)), (__m512i)of);
#else
    return (Register)_mm256_mul_epu32(_mm256_set1_epi64x(static_cast<std::int64_t>(factor)), (__m256i)of);
#endif
  }

  /// Applies `philox` to all draws. The upper halves of words are not used.
  KOKKOS_FORCEINLINE_FUNCTION void draw(std::uint64_t key) {
    constexpr int most = registers / 8, at_once = count / width < most ? count / width : most;  // half of the registers
    static_assert(count % (at_once * width) == 0);
    for (int begin = 0; begin < count; begin += at_once * width) {
      // Whole registers: what is written in parts and read at once waits for the writes.
      Register x[4 * at_once];
      const auto words_of = [&](auto i) { return word[i / at_once] + begin + i % at_once * width; };
      unrolled<4 * at_once>([&](auto i) { std::memcpy(&x[i], words_of(i), sizeof x[i]); });
      Register k0 = (key & 0xffffffffu) + Register{}, k1 = (key >> 32) + Register{};
      for (int round = 0; round < 10; ++round) {
        unrolled<at_once>([&](auto r) {
          Register &x0 = x[r], &x1 = x[at_once + r], &x2 = x[2 * at_once + r], &x3 = x[3 * at_once + r];
          const Register p0 = product(0xD2511F53u, x0), p1 = product(0xCD9E8D57u, x2);
          x0 = (p1 >> 32) ^ x1 ^ k0;
          x2 = (p0 >> 32) ^ x3 ^ k1;
          x1 = p1;
          x3 = p0;
        });
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
      }
      unrolled<4 * at_once>([&](auto i) { std::memcpy(words_of(i), &x[i], sizeof x[i]); });
    }
  }

  /// Stores the four words of each draw consecutively: to (count, 4).
  KOKKOS_FORCEINLINE_FUNCTION void store(std::uint32_t* KOKKOS_RESTRICT to) const {
#if defined(__AVX512F__)
    const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11),
                  high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    for (int i = 0; i < count; i += 8) {
      const auto pairs = [&](int w) {  // words w and w + 1 of each draw
        return _mm512_mask_shuffle_epi32(_mm512_loadu_si512(word[w] + i), 0xaaaa, _mm512_loadu_si512(word[w + 1] + i),
                                         _MM_PERM_CCAA);
      };
      const __m512i first = pairs(0), second = pairs(2);
      _mm512_storeu_si512(to + 4 * i, _mm512_permutex2var_epi64(first, low, second));
      _mm512_storeu_si512(to + 4 * i + 16, _mm512_permutex2var_epi64(first, high, second));
    }
#else
    for (int i = 0; i < count; i += width) {
      const auto load = [&](int w) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(word[w] + i)); };
      const auto pairs = [&](int w) { return _mm256_blend_epi32(load(w), _mm256_slli_epi64(load(w + 1), 32), 0xaa); };
      const __m256i low = _mm256_unpacklo_epi64(pairs(0), pairs(2)), high = _mm256_unpackhi_epi64(pairs(0), pairs(2));
      auto* const four = reinterpret_cast<__m256i*>(to + 4 * i);
      _mm256_storeu_si256(four, _mm256_permute2x128_si256(low, high, 0x20));
      _mm256_storeu_si256(four + 1, _mm256_permute2x128_si256(low, high, 0x31));
    }
#endif
  }
#else
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
#endif
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
