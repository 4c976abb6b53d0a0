#pragma once

#include "core/device.hpp"

#include <cstddef>

/// Properties of an execution space for libraries that are loaded at run time.
namespace mylos::cuda {

/// Returns the cudaStream_t of `space`.
void* stream_of(const ExecutionSpace& space);

/// Returns the compute capability of its device; 90 is 9.0.
int capability_of(const ExecutionSpace& space);

/// Returns at least `bytes` of its kernel scratch (core/kernels/scratch.hpp), which launches of teams on `space` use
/// too: in the order of launches, each of them overwrites what the ones before it left. If there is less, waits for all
/// queued work and allocates it.
void* scratch_of(const ExecutionSpace& space, std::size_t bytes);

}  // namespace mylos::cuda
