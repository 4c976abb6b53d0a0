#pragma once

#include "parallel/launch.hpp"

#include <Kokkos_Core.hpp>

#include <string>

/// Kokkos, for commands that compute; the others never start it.
namespace mylos::app {

/// Starts Kokkos and ends it when it goes. Made once a process.
class ComputeScope {
 public:
  /// With the threads that OMP_NUM_THREADS says, else one for each CPU this process may run on. Errors: those of
  /// usable_devices (core/device.hpp).
  ComputeScope();
  /// As a rank of a launch, which has checked its devices.
  explicit ComputeScope(const parallel::Launch& launch);

 private:
  Kokkos::ScopeGuard guard_;
};

/// Threads that ComputeScope would start.
std::size_t default_threads();

/// CPUs that this process may run on.
std::size_t usable_cpus();

}  // namespace mylos::app
