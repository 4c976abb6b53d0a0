#pragma once

#include "core/device.hpp"

namespace mylos::cuda {

/// Returns the cudaStream_t of `space`, for libraries that are loaded at run time.
void* stream_of(const ExecutionSpace& space);

}  // namespace mylos::cuda
