#pragma once

#include "core/device.hpp"

/// Functions of NVIDIA GPUs that Kokkos lacks, or has only in a slower form: powers of two, and sums over a team.
#if defined(MYLOS_DEVICE_BUILD)
namespace mylos::cuda {

/// Returns 2^x to 2 units in the last place; 0 below the smallest normal number.
__device__ __forceinline__ float exp2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

inline constexpr int warp_size = 32;

/// Replaces each of `values` by the combination of all threads of a block of whole warps, at most `most_threads`, which
/// are numbered by threadIdx.y. Threads of a warp exchange values; several warps wait at two barriers. The order
/// depends only on the number of threads. A block of one warp does not wait, and its memory accesses are not ordered.
template <auto combine, int most_threads, class Real, int count>
__device__ __forceinline__ void combine_over_block(Real (&values)[count]) {
  constexpr int most_warps = most_threads / warp_size;
  MYLOS_UNROLLED
  for (int distance = warp_size / 2; distance > 0; distance /= 2) {
    MYLOS_UNROLLED
    for (int i = 0; i < count; ++i) values[i] = combine(values[i], __shfl_xor_sync(0xffffffffu, values[i], distance));
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

}  // namespace mylos::cuda
#endif
