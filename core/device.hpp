#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// The one place that names execution spaces, memory spaces, layouts and what devices are built with.

/// Set where kernels are compiled for devices: what only host compilers understand is left out of them.
#if defined(KOKKOS_ENABLE_CUDA)
#define MYLOS_DEVICE_BUILD
#endif

/// Before a loop over what a device's thread holds: it stays in registers where all of its indices are known to the
/// compiler.
#if defined(__CUDA_ARCH__)
#define MYLOS_UNROLLED _Pragma("unroll")
#else
#define MYLOS_UNROLLED
#endif

namespace mylos {

using ExecutionSpace = Kokkos::DefaultExecutionSpace;
using MemorySpace = ExecutionSpace::memory_space;
using HostSpace = Kokkos::HostSpace;

/// Kernels run on the host, and the host reads what they read.
inline constexpr bool runs_on_host = Kokkos::SpaceAccessibility<HostSpace, MemorySpace>::accessible;

/// Kernels are those of devices, for teams of several threads. A host build may have them too, to test them there.
#if defined(MYLOS_DEVICE_BUILD) || defined(MYLOS_DEVICE_KERNELS)
inline constexpr bool kernels_in_teams = true;
#else
inline constexpr bool kernels_in_teams = false;
#endif

/// Device arrays are row-major and may be parts of larger ones. Owning arrays are Vector and Matrix as well.
template <class T>
using Vector = Kokkos::View<T*, Kokkos::LayoutRight, MemorySpace>;
template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, MemorySpace>;
template <class T>
using HostVector = Kokkos::View<T*, Kokkos::LayoutRight, HostSpace>;
/// Host memory that devices copy from while the host goes on; HostVector where there is no device.
template <class T>
using PinnedVector = Kokkos::View<T*, Kokkos::LayoutRight, Kokkos::SharedHostPinnedSpace>;

template <class T>
using ConstVector = Vector<const T>;
template <class T>
using ConstMatrix = Matrix<const T>;

/// The range [begin, end) of a vector, as a vector.
template <class T>
Vector<T> slice(const Vector<T>& whole, std::size_t begin, std::size_t end) {
  return Kokkos::subview(whole, Kokkos::make_pair(begin, end));
}

/// A vector's first rows * columns elements seen as a matrix. No copy; `data` must outlive it.
template <class T>
Matrix<T> as_matrix(const Vector<T>& data, std::size_t rows, std::size_t columns) {
  return Matrix<T>(data.data(), rows, columns);
}

/// A device that this process sees.
struct DeviceInfo {
  std::string name;        ///< "NVIDIA A100-SXM4-80GB"
  std::string id;          ///< the same for every process that sees it
  int capability = 0;      ///< 80 is compute capability 8.0
  std::size_t memory = 0;  ///< bytes
  std::size_t index = 0;   ///< among those that this process sees
};

/// The devices that kernels of this build can run on here, in the order of their index; a host build has none, and
/// needs none. Errors: std::runtime_error where the build needs one and there is no driver, no device, or none but
/// older ones than the build was made for: what is missing, and what to change.
std::vector<DeviceInfo> usable_devices();

/// The device that kernels run on; a host build has none. Kokkos has been started.
std::optional<DeviceInfo> device_in_use();

/// Bytes of memory that are free on the device in use, and that anybody has taken of it; of a host build see
/// train/engine/memory.hpp. 0 where there is no device.
std::size_t free_device_memory();
std::size_t used_device_memory();

/// Where launches are queued beside those on ExecutionSpace(), on the same device; on a host ExecutionSpace() itself.
ExecutionSpace make_queue();

/// A place in the order of what is launched, which the host and other queues can wait for; a copyable handle. Where
/// launches return when they have run there is nothing to wait for.
class LaunchMark {
 public:
  /// Stands after what was launched on `space` until now.
  void set(const ExecutionSpace& space);
  /// Returns when what stands before it has run; at once where it was never set.
  void wait() const;
  /// What is launched on `space` from now on runs after what stands before it; the host does not wait.
  void hold_up(const ExecutionSpace& space) const;

 private:
  std::shared_ptr<void> event_;
};

/// An owning vector that is not filled; `label` names it in memory reports.
template <class T>
Vector<T> uninitialized(const std::string& label, std::size_t size) {
  return Vector<T>(Kokkos::view_alloc(label, Kokkos::WithoutInitializing), size);
}

}  // namespace mylos
