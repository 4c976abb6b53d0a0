#pragma once

#include "core/base/gpu_architecture.hpp"

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The only header that names execution spaces, memory spaces, layouts and the backend of device builds.

/// Defined if kernels are compiled for a device; code that only host compilers accept is excluded then.
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
#define MYLOS_DEVICE_BUILD
#endif

/// Defined in the compiler's pass for a device, which also reads what only the host executes.
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
#define MYLOS_DEVICE_PASS
#endif

/// Precedes a loop over values held by one device thread. Unrolling makes all indices compile-time constants, so that
/// the values stay in registers.
#if defined(MYLOS_DEVICE_PASS)
#define MYLOS_UNROLLED _Pragma("unroll")
#else
#define MYLOS_UNROLLED
#endif

namespace mylos {

using ExecutionSpace = Kokkos::DefaultExecutionSpace;
using MemorySpace = ExecutionSpace::memory_space;
using HostSpace = Kokkos::HostSpace;

/// True if kernels run on the host, so that the host can access kernel memory.
inline constexpr bool runs_on_host = Kokkos::SpaceAccessibility<HostSpace, MemorySpace>::accessible;

/// True if the device kernels, which use teams of several threads, are compiled. A host build may enable them for
/// tests.
#if defined(MYLOS_DEVICE_BUILD) || defined(MYLOS_DEVICE_KERNELS)
inline constexpr bool kernels_in_teams = true;
#else
inline constexpr bool kernels_in_teams = false;
#endif

/// Device arrays are row-major and may be views of parts of larger arrays. Owning arrays have the same types, Vector
/// and Matrix.
template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, MemorySpace>;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, MemorySpace>;
template <class T>
using HostVector = Kokkos::View<T*, Kokkos::LayoutRight, HostSpace>;
/// Pinned host memory for asynchronous copies to a device; equals HostVector if there is no device.
template <class T>
using PinnedVector = Kokkos::View<T*, Kokkos::LayoutRight, Kokkos::SharedHostPinnedSpace>;

template <class T>
using ConstVector = Vector<const T>;
template <class T>
using ConstMatrix = Matrix<const T>;

/// Returns the range [begin, end) of a vector, as a vector.
template <class T>
Vector<T> slice(const Vector<T>& whole, std::size_t begin, std::size_t end) {
  return Kokkos::subview(whole, Kokkos::make_pair(begin, end));
}

/// Views the first rows * columns elements of a vector as a matrix. No copy; `data` must outlive the result.
template <class T>
Matrix<T> as_matrix(const Vector<T>& data, std::size_t rows, std::size_t columns) {
  return Matrix<T>(data.data(), rows, columns);
}

/// A device visible to this process.
struct DeviceInfo {
  std::string name;  ///< "NVIDIA A100-SXM4-80GB"
  std::string id;    ///< identical in every process that sees the device
  GpuArchitecture architecture = {};
  std::size_t memory = 0;  ///< bytes
  std::size_t index = 0;   ///< index among the devices visible to this process
};

/// Returns the devices that this build can run kernels on, ordered by index; empty in a host build. Errors:
/// std::runtime_error if the build needs a device and there is no driver, no device, or only devices older than the
/// build's target; the message says what is missing and what to change.
std::vector<DeviceInfo> usable_devices();

/// Returns the device that kernels run on; nullopt in a host build. Kokkos must be initialized.
std::optional<DeviceInfo> device_in_use();
/// Returns its architecture; none in a host build.
inline GpuArchitecture architecture_in_use() { return device_in_use().value_or(DeviceInfo()).architecture; }

/// Checks that kernels find their arguments where the host writes them: the compilers of a device build lay out views
/// twice, and not all versions agree. No-op in a host build. Kokkos must be initialized. Errors: std::runtime_error.
void check_kernel_arguments();

/// Bytes of memory that are free on the current device, and bytes in use by any process. 0 if there is no device; for
/// host memory see train/engine/memory/memory.hpp.
std::size_t free_device_memory();
std::size_t used_device_memory();

/// Creates a queue on the same device that runs concurrently with ExecutionSpace(); on a host returns ExecutionSpace().
ExecutionSpace make_queue();

/// An event in the order of launches, for which the host and other queues can wait; a copyable handle. A no-op if
/// launches are synchronous, as on a host.
class LaunchMark {
 public:
  /// Records the event after everything launched on `space` so far.
  void set(const ExecutionSpace& space);
  /// Blocks until everything before the event has completed; returns at once if the event was never set.
  void wait() const;
  /// Makes later launches on `space` wait for the event; the host does not wait.
  void hold_up(const ExecutionSpace& space) const;

 private:
  std::shared_ptr<void> event_;
};

/// A point in time in the order of launches; a copyable handle. On a device, it is the time at which all earlier
/// launches have completed. On a host, it is the time at which it was set.
class LaunchTime {
 public:
  /// Records the time after everything launched on `space` so far. Does not wait for it.
  void set(const ExecutionSpace& space);
  /// Returns the seconds from `earlier` to this time. Both times must have been set. Blocks until this time has passed.
  double seconds_since(const LaunchTime& earlier) const;

 private:
  std::shared_ptr<void> moment_;
};

/// Returns an owning, uninitialized vector; `label` names it in memory reports.
template <class T>
Vector<T> uninitialized(const std::string& label, std::size_t size) {
  return Vector<T>(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), size);
}

}  // namespace mylos
