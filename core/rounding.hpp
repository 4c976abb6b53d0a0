#pragma once

#include <cstdint>

/// Device instructions that convert 16-bit floats. They give the same bits as core/numeric.hpp, except for NaNs. The
/// bfloat16 conversion and those of pairs need compute capability 8.0.
#if defined(__CUDA_ARCH__)
#define MYLOS_CONVERTS_HALF
#if __CUDA_ARCH__ >= 800
#define MYLOS_ROUNDS_BFLOAT16
#endif

namespace mylos::cuda {

__device__ __forceinline__ std::uint16_t round_to_half(float value) {
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

__device__ __forceinline__ float half_to_float(std::uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

#if defined(MYLOS_ROUNDS_BFLOAT16)
/// Rounds two floats, the first to the lower half of the word.
__device__ __forceinline__ std::uint32_t round_pair_to_bfloat16(float low, float high) {
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

__device__ __forceinline__ std::uint16_t round_to_bfloat16(float value) {
  return static_cast<std::uint16_t>(round_pair_to_bfloat16(value, 0.0f));
}

__device__ __forceinline__ std::uint32_t round_pair_to_half(float low, float high) {
  std::uint32_t word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
#endif

}  // namespace mylos::cuda
#endif
