#pragma once

#include "core/kernels/chunks.hpp"

/// Rows held in the registers of a device's team: each is read once, even if it is used several times.
namespace mylos {

/// Columns per chunk; a chunk is loaded, normalised and dropped out together.
inline constexpr std::size_t row_chunk = 8;

/// Maximum number of chunks per thread, given `most` for a device; larger for the few threads of a host.
template <int most>
inline constexpr int held_chunks = runs_on_host ? 48 * most : most;

/// Number of rows that a thread holds at the same time, with up to `chunks` chunks of each: 64 bytes of each array, or
/// one row if that is more.
template <class T, int chunks>
inline constexpr int rows_at_once = std::max(1, 8 / static_cast<int>(sizeof(T)) / chunks);

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

/// The part of a row held by one thread.
template <class T, int most>
using HeldRow = Chunk<T, row_chunk>[held_chunks<most>];

template <int most, class T, class Team>
KOKKOS_FORCEINLINE_FUNCTION void load_row(const Team& team, std::size_t columns, const T* from,
                                          HeldRow<T, most>& held) {
  for_held_chunks<most>(team, columns, [&](int k, std::size_t column) { held[k].load(from + column); });
}

/// Calls body(k, j) for each element held by this thread: the j-th of its k-th chunk.
template <int most, class Team, class Body>
KOKKOS_FORCEINLINE_FUNCTION void for_held_elements(const Team& team, std::size_t columns, const Body& body) {
  for_held_chunks<most>(team, columns, [&](int k, std::size_t) {
    MYLOS_UNROLLED
    for (unsigned j = 0; j < row_chunk; ++j) body(k, j);
  });
}

/// Launches the Held kernel if teams can hold the rows. Returns whether they can.
template <class Held, class Arrays>
bool launch_held(const std::string& label, const ExecutionSpace& space, std::size_t tasks, std::size_t columns,
                 const Arrays& arrays) {
  const TeamShape team = team_that_holds<Held::most>(space, columns);
  if (team.threads == 0) return false;
  for_each_row<typename Held::Bounds>(label, space, tasks, Held{arrays}, team);
  return true;
}

/// Uses the first of the Held kernels whose teams can hold the rows, else the Any kernel for rows of any length. The
/// Held kernels need aligned arrays.
template <class Any, class... Held, class Arrays>
void for_each_held_task(const std::string& label, const ExecutionSpace& space, std::size_t tasks, std::size_t columns,
                        const Arrays& arrays, const TeamShape& shape_of_any = {}) {
  if constexpr (kernels_in_teams) {
    if (arrays.aligned() && (launch_held<Held>(label, space, tasks, columns, arrays) || ...)) return;
  }
  for_each_row(label, space, tasks, Any{arrays}, shape_of_any);
}

/// The same with Held<1>, Held<2> and, for 16-bit elements, Held<4>, whose threads hold as many chunks of a row: rows
/// of up to 8192 columns, 4096 of float. More chunks per thread leave registers for fewer teams.
template <class T, class Any, template <int> class Held, class Arrays>
void for_each_long_row_task(const std::string& label, const ExecutionSpace& space, std::size_t tasks,
                            std::size_t columns, const Arrays& arrays) {
  if constexpr (sizeof(T) == 2) {
    for_each_held_task<Any, Held<1>, Held<2>, Held<4>>(label, space, tasks, columns, arrays);
  } else {
    for_each_held_task<Any, Held<1>, Held<2>>(label, space, tasks, columns, arrays);
  }
}

}  // namespace mylos
