#pragma once

#include "core/device.hpp"
#include "core/device_functions.hpp"

#include <cstddef>

/// Sums and maxima over the threads of a device's team. On GPUs the threads of a warp exchange values, and a
/// team of several warps waits at two barriers; Kokkos' reduction over a team has about twenty. The order depends only
/// on the number of threads.
namespace mylos {

template <class Real>
KOKKOS_FORCEINLINE_FUNCTION Real sum_of_two(Real a, Real b) {
  return a + b;
}
/// Returns the larger number; neither may be a NaN.
KOKKOS_FORCEINLINE_FUNCTION float larger_of_two(float a, float b) { return a < b ? b : a; }

/// Calls body(i) for each i in [0, n) that belongs to this thread of a team.
template <class Team, class Body>
KOKKOS_FORCEINLINE_FUNCTION void for_items_of_thread(const Team& team, std::size_t n, const Body& body) {
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

/// Maximum number of threads per device team, if it depends on the work.
inline constexpr int largest_team = 256;

/// Replaces each of `values` by the combination of all threads of the team, on all threads. combine(x, neutral) is x. A
/// team on a GPU has whole warps and at most `most_threads` threads.
template <auto combine, int most_threads, class Real, int count, class Team>
KOKKOS_FORCEINLINE_FUNCTION void combine_over_team([[maybe_unused]] const Team& team, Real (&values)[count],
                                                   [[maybe_unused]] Real neutral) {
  KOKKOS_IF_ON_DEVICE((gpu::combine_over_block<combine, most_threads>(values);))
  KOKKOS_IF_ON_HOST((using Reducer = TeamReducer<combine, Real, count>; typename Reducer::Values all;
                     for (int i = 0; i < count; ++i) all.value[i] = values[i]; team.team_reduce(Reducer(all, neutral));
                     for (int i = 0; i < count; ++i) values[i] = all.value[i];))
}

/// Replaces each of `sums` by its sum over the team's threads, on all threads.
template <int most_threads = largest_team, class Real, int count, class Team>
KOKKOS_FORCEINLINE_FUNCTION void add_over_team(const Team& team, Real (&sums)[count]) {
  combine_over_team<&sum_of_two<Real>, most_threads>(team, sums, Real(0));
}

}  // namespace mylos
