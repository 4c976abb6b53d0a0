#pragma once

#include "core/base/precision.hpp"
#include "core/rounding.hpp"

#include <Kokkos_BitManipulation.hpp>
#include <Kokkos_Macros.hpp>

#include <cstdint>
#include <type_traits>

/// The element types of parameter values and activations. Mylos has its own 16-bit types because those of Kokkos are
/// float in host builds. They only store and convert: all arithmetic is in float.
namespace mylos {

/// The upper half of an IEEE binary32: 8 exponent and 7 fraction bits. Rounds to nearest even.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  KOKKOS_INLINE_FUNCTION explicit bfloat16(float value) {
#if defined(MYLOS_ROUNDS_BFLOAT16)
    bits = cuda::round_to_bfloat16(value);
#else
    const auto word = Kokkos::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
    // Rounding would turn a NaN with its payload in the lower half into infinity; make it quiet instead.
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(is_nan ? ((word >> 16) | 0x40u) : rounded);
#endif
  }
  KOKKOS_INLINE_FUNCTION operator float() const {
    return Kokkos::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// IEEE binary16: 5 exponent and 10 fraction bits, with subnormals. Rounds to nearest even.
struct half {
  std::uint16_t bits = 0;

  half() = default;
  KOKKOS_INLINE_FUNCTION explicit half(float value) {
#if defined(MYLOS_CONVERTS_HALF)
    bits = cuda::round_to_half(value);
#else
    const auto word = Kokkos::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((word >> 16) & 0x8000u);
    const std::uint32_t magnitude = word & 0x7fffffffu;
    bits = static_cast<std::uint16_t>(sign | round_magnitude(magnitude));
#endif
  }
  KOKKOS_INLINE_FUNCTION operator float() const {
#if defined(MYLOS_CONVERTS_HALF)
    return cuda::half_to_float(bits);
#else
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u) return Kokkos::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    // Shifting the bits left and multiplying by 2^112 rebiases the exponent, also for subnormals.
    const float scaled = Kokkos::bit_cast<float>(magnitude << 13) * 0x1p112f;
    return Kokkos::bit_cast<float>(sign | Kokkos::bit_cast<std::uint32_t>(scaled));
#endif
  }

 private:
  KOKKOS_INLINE_FUNCTION static std::uint16_t round_magnitude(std::uint32_t magnitude) {
    if (magnitude > 0x7f800000u) return 0x7e00u;   // NaN
    if (magnitude >= 0x477ff000u) return 0x7c00u;  // rounds beyond 65504: infinity
    if (magnitude < 0x38800000u) {
      // Subnormal: adding 0.5 aligns the fraction to 2^-24, and the float addition rounds to nearest even.
      const float aligned = Kokkos::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<std::uint16_t>(Kokkos::bit_cast<std::uint32_t>(aligned) - 0x3f000000u);
    }
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u;
    return static_cast<std::uint16_t>(rounded >> 13);
  }
};

/// Returns the bits of T(low) and, in the upper half, of T(high). Devices round both in one instruction.
template <class T>
KOKKOS_INLINE_FUNCTION std::uint32_t rounded_pair(float low, float high) {
#if defined(MYLOS_ROUNDS_BFLOAT16)
  if constexpr (std::is_same_v<T, bfloat16>) return cuda::round_pair_to_bfloat16(low, high);
  return cuda::round_pair_to_half(low, high);
#else
  return T(low).bits | static_cast<std::uint32_t>(T(high).bits) << 16;
#endif
}

template <class T>
inline constexpr Precision precision_of = Precision::float32;
template <>
inline constexpr Precision precision_of<bfloat16> = Precision::bfloat16;
template <>
inline constexpr Precision precision_of<half> = Precision::float16;

}  // namespace mylos
