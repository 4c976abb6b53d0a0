#pragma once

#include "core/device.hpp"

namespace mylos::cuda {

/// The cudaStream_t that `space` launches on, for libraries that are loaded at run time.
void* stream_of(const ExecutionSpace& space);

}  // namespace mylos::cuda
