#pragma once

#include "core/device.hpp"

#include <cstddef>

/// Memory that teams of a device work in beside their arguments, and that is too large for a processor's own.
namespace mylos {

/// The processor that runs the teams of a kernel.
struct TeamProcessor {
  std::size_t threads = 0;      ///< that run at once
  bool on_host = runs_on_host;  ///< a team is one thread, and its fast memory is ordinary memory
};

/// Makes `space` hold `bytes` of it for the launches to come. Kokkos takes it when a launch asks for more than any
/// before, and all that was launched has to end first: in the midst of a run that would be a wait, and on a host pieces
/// of growing size would stay in the heaps.
void reserve_scratch(const ExecutionSpace& space, std::size_t bytes);

}  // namespace mylos
