#include "core/kernels/scratch.hpp"

#include <algorithm>

namespace mylos {
namespace {

struct NoWork {
  KOKKOS_INLINE_FUNCTION void operator()(const Kokkos::TeamPolicy<ExecutionSpace>::member_type&) const {}
};

/// Launches one team per thread with an equal part of `bytes` each; Kokkos allocates the scratch of every launch.
void reserve_on_threads(const ExecutionSpace& space, std::size_t bytes) {
  const auto threads = static_cast<std::size_t>(space.concurrency());
  Kokkos::TeamPolicy<ExecutionSpace> policy(space, static_cast<int>(threads), 1);
  policy.set_scratch_size(1, Kokkos::PerTeam((bytes + threads - 1) / threads));
  Kokkos::parallel_for("mylos::reserve_scratch", policy, NoWork{});
}

}  // namespace

void reserve_scratch(const ExecutionSpace& space, std::size_t bytes) {
  if constexpr (runs_on_host) {
    if (bytes > 0) reserve_on_threads(space, bytes);
    return;
  }
  // Kokkos allows at most 20 MiB per team, and allocates for the teams of the launch that the device runs at once.
  constexpr std::size_t of_team = std::size_t{1} << 20;
  const std::size_t teams = std::max<std::size_t>(1, (bytes + of_team - 1) / of_team);
  Kokkos::TeamPolicy<ExecutionSpace> policy(space, static_cast<int>(teams), 1);
  policy.set_scratch_size(1, Kokkos::PerTeam(std::clamp<std::size_t>(bytes, 1, of_team)));
  Kokkos::parallel_for("mylos::reserve_scratch", policy, NoWork{});
}

}  // namespace mylos
