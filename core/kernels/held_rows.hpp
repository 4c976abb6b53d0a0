#pragma once

#include "core/kernels/chunks.hpp"

/// Rows held in the registers of a device's team: each is read once, even if it is used several times.
namespace mylos {

/// Columns per chunk; a chunk is loaded, normalised and dropped out together.
inline constexpr std::size_t row_chunk = 8;

/// Maximum number of chunks per thread, given `most` for a device; larger for the few threads of a host.
template <int most>
inline constexpr int held_chunks = runs_on_host ? 48 : most;

/// Returns a team that can hold rows of `columns` in whole chunks, at most `most` per device thread; 0 threads if there
/// is none.
template <int most>
TeamShape team_that_holds(const ExecutionSpace& space, std::size_t columns) {
  const std::size_t chunks = columns / row_chunk;
  const int threads = team_size_for(space, (chunks + most - 1) / most);
  const bool fits = columns % row_chunk == 0 && chunks <= static_cast<std::size_t>(threads * held_chunks<most>);
  return {.threads = fits ? threads : 0};
}

/// Calls body(k, column) for the chunks of a row held by this thread: its k-th begins at `column`.
template <int most, class Team, class Body>
KOKKOS_FORCEINLINE_FUNCTION void for_held_chunks(const Team& team, std::size_t columns, const Body& body) {
  MYLOS_UNROLLED
  for (int k = 0; k < held_chunks<most>; ++k) {
    const std::size_t column = static_cast<std::size_t>(team.team_rank() + k * team.team_size()) * row_chunk;
    if (column < columns) body(k, column);
  }
}

/// A Kokkos reducer that sums several numbers element by element.
template <int count>
struct FloatSums {
  using reducer = FloatSums;
  struct Values {
    float value[count];
  };
  using value_type = Values;
  using result_view_type = Kokkos::View<Values, HostSpace, Kokkos::MemoryUnmanaged>;

  KOKKOS_FUNCTION explicit FloatSums(Values& result) : result_(result) {}
  KOKKOS_FUNCTION void init(Values& sum) const {
    for (int i = 0; i < count; ++i) sum.value[i] = 0.0f;
  }
  KOKKOS_FUNCTION void join(Values& sum, const Values& other) const {
    MYLOS_UNROLLED
    for (int i = 0; i < count; ++i) sum.value[i] += other.value[i];
  }
  KOKKOS_FUNCTION Values& reference() const { return result_; }
  KOKKOS_FUNCTION result_view_type view() const { return result_view_type(&result_); }
  KOKKOS_FUNCTION bool references_scalar() const { return true; }

 private:
  Values& result_;
};

/// Replaces each of `sums` by its sum over the team's threads, on all threads.
template <int count, class Team>
KOKKOS_FORCEINLINE_FUNCTION void add_over_team(const Team& team, float (&sums)[count]) {
  typename FloatSums<count>::value_type all;
  MYLOS_UNROLLED
  for (int i = 0; i < count; ++i) all.value[i] = sums[i];
  team.team_reduce(FloatSums<count>(all));
  MYLOS_UNROLLED
  for (int i = 0; i < count; ++i) sums[i] = all.value[i];
}

}  // namespace mylos
