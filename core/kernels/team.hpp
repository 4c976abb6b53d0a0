#pragma once

#include "core/device.hpp"
#include "core/kernels/team_combine.hpp"

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

/// Loops with one source for two kinds of machine: a team of device threads, or one host thread whose inner loops
/// vectorise. A functor takes (team, row); inside it, the team's threads divide the work of `team_for` and `team_sum`.
/// Sums have a fixed order that depends only on the extent, so they are the same on every launch.
namespace mylos {

/// The team of a host thread: the thread alone.
struct HostTeam {};

/// Number of partial sums of a host sum, equal to two AVX-512 registers: GCC does not reorder float sums, and with one
/// register each addition would wait for the one before.
inline constexpr std::size_t host_lanes = 32;

#if defined(MYLOS_DEVICE_BUILD)
#define MYLOS_INDEPENDENT
#elif defined(__clang__)
#define MYLOS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MYLOS_INDEPENDENT _Pragma("GCC ivdep")
#endif

/// Precedes a loop of constant trip count that should vectorise: GCC fully unrolls loops of 16 iterations or fewer
/// before it vectorises, and then generates scalar code.
#if defined(KOKKOS_COMPILER_GNU) && !defined(MYLOS_DEVICE_BUILD)
#define MYLOS_ROLLED _Pragma("GCC unroll 1")
#else
#define MYLOS_ROLLED
#endif

#if !defined(MYLOS_DEVICE_BUILD)
/// Calls body(integral constant) for 0 to count - 1. Registers in an array stay in registers only if all indices are
/// constants: around loops that it unrolls later, GCC writes them to memory.
template <int count, class Body>
KOKKOS_FORCEINLINE_FUNCTION void unrolled(const Body& body) {
  [&]<int... index>(std::integer_sequence<int, index...>) { (body(std::integral_constant<int, index>{}), ...); }
  (std::make_integer_sequence<int, count>{});
}
#endif

/// Calls body(i) for i in [0, n), in any order: no iteration may read what another writes.
template <class Body>
KOKKOS_FORCEINLINE_FUNCTION void team_for(const HostTeam&, std::size_t n, const Body& body) {
  MYLOS_INDEPENDENT
  for (std::size_t i = 0; i < n; ++i) body(i);
}

template <class Team, class Body>
KOKKOS_FORCEINLINE_FUNCTION void team_for(const Team& team, std::size_t n, const Body& body) {
  Kokkos::parallel_for(Kokkos::TeamVectorRange(team, n), body);
}

/// Sums the lanes in a fixed order, by repeated halving.
template <std::size_t count, class Real, std::size_t lanes>
KOKKOS_FORCEINLINE_FUNCTION Real fold_sum_of(Real (&lane)[lanes]) {
  if constexpr (count > 1) {
    MYLOS_ROLLED
    for (std::size_t j = 0; j < count / 2; ++j) lane[j] += lane[j + count / 2];
    return fold_sum_of<count / 2>(lane);
  }
  return lane[0];
}
template <class Real, std::size_t lanes>
KOKKOS_FORCEINLINE_FUNCTION Real fold_sum(Real (&lane)[lanes]) {
  return fold_sum_of<lanes>(lane);
}

/// Returns the sum of term(i) for i in [0, n), on all threads of the team.
template <class Real = float, class Term>
KOKKOS_FORCEINLINE_FUNCTION Real team_sum(const HostTeam&, std::size_t n, const Term& term) {
  Real lane[host_lanes] = {};
  const std::size_t whole = n - n % host_lanes;
  for (std::size_t i = 0; i < whole; i += host_lanes) {
    for (std::size_t j = 0; j < host_lanes; ++j) lane[j] += term(i + j);
  }
  for (std::size_t j = 0; j < n - whole; ++j) lane[j] += term(whole + j);
  return fold_sum(lane);
}

template <class Real = float, class Team, class Term>
KOKKOS_FORCEINLINE_FUNCTION Real team_sum(const Team& team, std::size_t n, const Term& term) {
  Real sums[1] = {};
  for_items_of_thread(team, n, [&](std::size_t i) { sums[0] += term(i); });
  add_over_team(team, sums);
  team.team_barrier();
  return sums[0];
}

/// Computes two sums in one pass over memory: term(i, a, b) sets the contributions of i.
template <class Term>
KOKKOS_FORCEINLINE_FUNCTION void team_sums(const HostTeam&, std::size_t n, const Term& term, float& first,
                                           float& second) {
  float lane[host_lanes] = {}, other[host_lanes] = {};
  const std::size_t whole = n - n % host_lanes;
  const auto add = [&](std::size_t i, std::size_t j) {
    float a, b;
    term(i, a, b);
    lane[j] += a;
    other[j] += b;
  };
  for (std::size_t i = 0; i < whole; i += host_lanes) {
    for (std::size_t j = 0; j < host_lanes; ++j) add(i + j, j);
  }
  for (std::size_t j = 0; j < n - whole; ++j) add(whole + j, j);
  first = fold_sum(lane);
  second = fold_sum(other);
}

template <class Team, class Term>
KOKKOS_FORCEINLINE_FUNCTION void team_sums(const Team& team, std::size_t n, const Term& term, float& first,
                                           float& second) {
  float sums[2] = {};
  for_items_of_thread(team, n, [&](std::size_t i) {
    float a, b;
    term(i, a, b);
    sums[0] += a;
    sums[1] += b;
  });
  add_over_team(team, sums);
  team.team_barrier();
  first = sums[0];
  second = sums[1];
}

/// Returns the largest value(i) for i in [0, n), on all threads of the team; -infinity if n is 0.
template <class Value>
KOKKOS_FORCEINLINE_FUNCTION float team_max(const HostTeam&, std::size_t n, const Value& value) {
  float largest = -Kokkos::Experimental::infinity_v<float>;
  for (std::size_t i = 0; i < n; ++i) largest = largest < value(i) ? value(i) : largest;
  return largest;
}

template <class Team, class Value>
KOKKOS_FORCEINLINE_FUNCTION float team_max(const Team& team, std::size_t n, const Value& value) {
  float largest[1] = {-Kokkos::Experimental::infinity_v<float>};
  for_items_of_thread(team, n, [&](std::size_t i) { largest[0] = larger_of_two(largest[0], value(i)); });
  combine_over_team<&larger_of_two, largest_team>(team, largest, -Kokkos::Experimental::infinity_v<float>);
  team.team_barrier();
  return largest[0];
}

/// Makes the writes of each thread visible to the rest of the team.
KOKKOS_FORCEINLINE_FUNCTION void team_barrier(const HostTeam&) {}

template <class Team>
KOKKOS_FORCEINLINE_FUNCTION void team_barrier(const Team& team) {
  team.team_barrier();
}

/// Threads per device team.
inline constexpr int device_team_size = 128;

/// Threads per team for kernels in teams; on a host, limited by its concurrency.
inline int team_size(const ExecutionSpace& space) {
  return runs_on_host ? std::min(space.concurrency(), device_team_size) : device_team_size;
}

/// Returns the threads per team for `work` parallel items; on a device, whole warps of 32 up to `most` threads. A team
/// of a single warp reduces without waiting at a barrier.
inline int team_size_for(const ExecutionSpace& space, std::size_t work, std::size_t most = largest_team) {
  return runs_on_host ? team_size(space) : static_cast<int>(std::clamp<std::size_t>((work + 31) / 32 * 32, 32, most));
}

/// The resources of each team of a launch.
struct TeamShape {
  int threads = 0;                ///< 0: team_size(space)
  std::size_t scratch_bytes = 0;  ///< fast memory common to the team's threads
};

template <class Functor>
struct HostRows {
  Functor functor;
  void operator()(std::size_t row) const { functor(HostTeam{}, row); }
};

template <class Functor>
struct DeviceRows {
  Functor functor;
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team) const {
    functor(team, static_cast<std::size_t>(team.league_rank()));
  }
};

/// Makes kernels of `policy` take their functors as kernel arguments. By default, Kokkos passes functors of 512 bytes
/// or more through a single buffer in constant memory, and the host waits until the previous kernel that reads it has
/// ended.
template <class Policy>
auto with_functor_as_argument(const Policy& policy) {
  if constexpr (runs_on_host) {
    return policy;
  } else {
    return Kokkos::Experimental::require(policy, Kokkos::Experimental::WorkItemProperty::HintLightWeight);
  }
}

/// Elements of a flat array per team.
inline constexpr std::size_t flat_block = 4096;

template <class Body>
struct FlatBlocks {
  Body body;
  std::size_t n;
  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t begin = block * flat_block;
    const Body each = body;
    team_for(team, n - begin < flat_block ? n - begin : flat_block, [=](std::size_t i) { each(begin + i); });
  }
};

/// Calls functor(team, row) for each of `rows` rows, one team per row. `shape` and Bounds apply to kernels in teams.
/// Bounds gives the maximum threads per team, and the number of such teams per multiprocessor for which the compiler
/// must leave enough registers.
template <class Bounds = Kokkos::LaunchBounds<>, class Functor>
void for_each_row(const std::string& label, const ExecutionSpace& space, std::size_t rows, const Functor& functor,
                  [[maybe_unused]] const TeamShape& shape = {}) {
  if constexpr (!kernels_in_teams) {
    const Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::size_t>> policy(space, 0, rows);
    Kokkos::parallel_for(label, policy, HostRows<Functor>{functor});
  } else {
    Kokkos::TeamPolicy<ExecutionSpace, Bounds> policy(space, static_cast<int>(rows),
                                                      shape.threads > 0 ? shape.threads : team_size(space));
    policy.set_scratch_size(0, Kokkos::PerTeam(shape.scratch_bytes));
    Kokkos::parallel_for(label, with_functor_as_argument(policy), DeviceRows<Functor>{functor});
  }
}

/// Calls body(i) for i in [0, n), in any order.
template <class Body>
void for_each_element(const std::string& label, const ExecutionSpace& space, std::size_t n, const Body& body) {
  for_each_row(label, space, (n + flat_block - 1) / flat_block, FlatBlocks<Body>{body, n});
}

}  // namespace mylos
