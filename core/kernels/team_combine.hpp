#pragma once

#include "core/device.hpp"

#include <cstddef>

/// Sums and maxima over the threads of a device's team. On NVIDIA GPUs the threads of a warp exchange values, and a
/// team of several warps waits at two barriers; Kokkos' reduction over a team has about twenty. The order depends only
/// on the number of threads.
namespace mylos {

template <class Real>
KOKKOS_FORCEINLINE_FUNCTION Real sum_of(Real a, Real b) {
  return a + b;
}
/// The larger number; a NaN only if it comes first.
KOKKOS_FORCEINLINE_FUNCTION float larger(float a, float b) { return a < b ? b : a; }

/// Calls body(i) for each i in [0, n) that belongs to this thread of a team.
template <class Team, class Body>
KOKKOS_FORCEINLINE_FUNCTION void for_own(const Team& team, std::size_t n, const Body& body) {
  const auto stride = static_cast<std::size_t>(team.team_size());
  for (auto i = static_cast<std::size_t>(team.team_rank()); i < n; i += stride) body(i);
}

/// A Kokkos reducer that combines several numbers element by element.
template <auto combine, class Real, int count>
struct TeamReducer {
  using reducer = TeamReducer;
  struct Values {
    Real value[count];
  };
  using value_type = Values;
  using result_view_type = Kokkos::View<Values, HostSpace, Kokkos::MemoryUnmanaged>;

  KOKKOS_FUNCTION TeamReducer(Values& result, Real neutral) : result_(result), neutral_(neutral) {}
  KOKKOS_FUNCTION void init(Values& values) const {
    for (int i = 0; i < count; ++i) values.value[i] = neutral_;
  }
  KOKKOS_FUNCTION void join(Values& values, const Values& other) const {
    MYLOS_UNROLLED
    for (int i = 0; i < count; ++i) values.value[i] = combine(values.value[i], other.value[i]);
  }
  KOKKOS_FUNCTION Values& reference() const { return result_; }
  KOKKOS_FUNCTION result_view_type view() const { return result_view_type(&result_); }
  KOKKOS_FUNCTION bool references_scalar() const { return true; }

 private:
  Values& result_;
  Real neutral_;
};

#if defined(__CUDA_ARCH__)
/// Replaces each of `values` by the combination of all threads of a block of whole warps, which are numbered by
/// threadIdx.y. All threads get the same bits.
template <auto combine, class Real, int count>
__device__ __forceinline__ void combine_over_block(Real (&values)[count]) {
  constexpr int warp = 32, most_warps = 1024 / warp;
  __shared__ Real of_warps[most_warps][count];
  MYLOS_UNROLLED
  for (int distance = warp / 2; distance > 0; distance /= 2) {
    MYLOS_UNROLLED
    for (int i = 0; i < count; ++i) values[i] = combine(values[i], __shfl_xor_sync(0xffffffffu, values[i], distance));
  }
  const int warps = static_cast<int>(blockDim.y) / warp, thread = static_cast<int>(threadIdx.y);
  if (warps == 1) return;
  __syncthreads();  // the values of an earlier call have been read
  if (thread % warp == 0) {
    MYLOS_UNROLLED
    for (int i = 0; i < count; ++i) of_warps[thread / warp][i] = values[i];
  }
  __syncthreads();
  MYLOS_UNROLLED
  for (int i = 0; i < count; ++i) values[i] = of_warps[0][i];
  for (int other = 1; other < warps; ++other) {
    MYLOS_UNROLLED
    for (int i = 0; i < count; ++i) values[i] = combine(values[i], of_warps[other][i]);
  }
}
#endif

/// Replaces each of `values` by the combination of all threads of the team, on all threads. combine(x, neutral) is x.
/// On a GPU, a team has whole warps.
template <auto combine, class Real, int count, class Team>
KOKKOS_FORCEINLINE_FUNCTION void combine_over_team(const Team& team, Real (&values)[count], Real neutral) {
#if defined(__CUDA_ARCH__)
  combine_over_block<combine>(values);
#else
  using Reducer = TeamReducer<combine, Real, count>;
  typename Reducer::Values all;
  for (int i = 0; i < count; ++i) all.value[i] = values[i];
  team.team_reduce(Reducer(all, neutral));
  for (int i = 0; i < count; ++i) values[i] = all.value[i];
#endif
}

/// Replaces each of `sums` by its sum over the team's threads, on all threads.
template <class Real, int count, class Team>
KOKKOS_FORCEINLINE_FUNCTION void add_over_team(const Team& team, Real (&sums)[count]) {
  combine_over_team<&sum_of<Real>>(team, sums, Real(0));
}

}  // namespace mylos
