#pragma once

#include "core/base/precision.hpp"
#include "parallel/launch/launch.hpp"

#include <Kokkos_Core.hpp>

#include <span>
#include <string>

/// Initializes Kokkos for the commands that compute; other commands never start it.
namespace mylos::app {

/// Initializes Kokkos on construction and finalizes it on destruction. May be created only once per process.
class ComputeScope {
 public:
  /// Uses the number of threads in OMP_NUM_THREADS, by default one per CPU that this process may run on. Errors: those
  /// of usable_devices and check_kernel_arguments (core/device.hpp).
  ComputeScope();
  /// Initializes Kokkos for a rank of a launch, which has checked its devices. Errors: those of check_kernel_arguments.
  explicit ComputeScope(const parallel::Launch& launch);

 private:
  Kokkos::ScopeGuard guard_;
};

/// Requires Kokkos to be initialized. Errors: std::runtime_error if the device in use does not support this precision,
/// or TF32 if `tf32`.
void check_precision(Precision precision, bool tf32);

/// Returns a remark if `precision` is slower than float on a CPU with these features, otherwise an empty string. A CPU
/// whose features are not known gets none.
std::string precision_remark(Precision precision, std::span<const std::string> cpu_features);

/// Returns the number of threads that ComputeScope would start.
std::size_t default_threads();

/// Returns the number of CPUs that this process may run on.
std::size_t usable_cpus();

}  // namespace mylos::app
