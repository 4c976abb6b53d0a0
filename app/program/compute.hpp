#pragma once

#include "core/numeric.hpp"
#include "parallel/launch/launch.hpp"

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

/// Errors: std::runtime_error where the device in use cannot compute in this precision, or floats in TF32. Kokkos has
/// been started.
void check_precision(Precision precision, bool tf32);

/// Threads that ComputeScope would start.
std::size_t default_threads();

/// CPUs that this process may run on.
std::size_t usable_cpus();

}  // namespace mylos::app
