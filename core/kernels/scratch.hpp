#pragma once

#include "core/device.hpp"

#include <cstddef>

/// Kernel scratch: memory that device teams use besides their arguments if it exceeds the fast memory of a
/// multiprocessor.
namespace mylos {

/// The processor that runs a kernel's teams.
struct TeamProcessor {
  std::size_t threads = 0;      ///< number that run concurrently
  bool on_host = runs_on_host;  ///< each team is one thread, and fast memory is ordinary memory
  GpuArchitecture architecture = {};
};

/// Reserves `bytes` of kernel scratch on `space` for later launches. On a device, it reserves at least one byte,
/// because Kokkos requests an empty allocation at every launch of teams until it has scratch. Without a reservation,
/// Kokkos allocates scratch whenever a launch needs more than any launch before. On a device, this waits for all queued
/// work. On a host, freed pieces of growing size would stay in the heap.
void reserve_scratch(const ExecutionSpace& space, std::size_t bytes);

}  // namespace mylos
