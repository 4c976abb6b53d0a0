#pragma once

#include "core/device.hpp"

/// Functions of GPUs that Kokkos lacks, or has only in a slower form: powers of two, and sums over a team.
#if defined(MYLOS_DEVICE_BUILD)
namespace mylos::gpu {

/// Returns 2^x to 2 units in the last place; 0 below the smallest normal number.
__device__ __forceinline__ float exp2(float x) {
#if defined(KOKKOS_ENABLE_HIP)
  return x < -126.0f ? 0.0f : __builtin_exp2f(x);
#else
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
#endif
}

/// Threads that exchange values. A wave of an AMD GPU has 64 threads, and each half of it exchanges values on its own.
/// So sums have the same order on all GPUs.
inline constexpr int warp_size = 32;

/// Returns the value of the thread of this warp whose number differs in the bits of `distance`.
template <class Real>
__device__ __forceinline__ Real exchanged(Real value, int distance) {
#if defined(KOKKOS_ENABLE_HIP)
  return __shfl_xor(value, distance, warp_size);
#else
  return __shfl_xor_sync(0xffffffffu, value, distance);
#endif
}

/// Replaces each of `values` by the combination of all threads of a block of whole warps, at most `most_threads`, which
/// are numbered by threadIdx.y. Threads of a warp exchange values; several warps wait at two barriers. The order
/// depends only on the number of threads. A block of one warp does not wait, and its memory accesses are not ordered.
template <auto combine, int most_threads, class Real, int count>
__device__ __forceinline__ void combine_over_block(Real (&values)[count]) {
  constexpr int most_warps = most_threads / warp_size;
  MYLOS_UNROLLED
  for (int distance = warp_size / 2; distance > 0; distance /= 2) {
    MYLOS_UNROLLED
    for (int i = 0; i < count; ++i) values[i] = combine(values[i], exchanged(values[i], distance));
  }
  if constexpr (most_warps > 1) {
    __shared__ Real of_warps[most_warps][count];
    const int warps = static_cast<int>(blockDim.y) / warp_size, thread = static_cast<int>(threadIdx.y);
    if (warps == 1) return;
    __syncthreads();  // the values of an earlier call have been read
    if (thread % warp_size == 0) {
      MYLOS_UNROLLED
      for (int i = 0; i < count; ++i) of_warps[thread / warp_size][i] = values[i];
    }
    __syncthreads();
    MYLOS_UNROLLED
    for (int i = 0; i < count; ++i) values[i] = of_warps[0][i];
    for (int other = 1; other < warps; ++other) {
      MYLOS_UNROLLED
      for (int i = 0; i < count; ++i) values[i] = combine(values[i], of_warps[other][i]);
    }
  }
}

}  // namespace mylos::gpu
#endif
