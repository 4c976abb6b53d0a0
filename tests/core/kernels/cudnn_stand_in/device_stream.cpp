#include "core/kernels/gpu/device_stream.hpp"

#include "tests/core/kernels/cudnn_stand_in/attention_stand_in.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

/// Replaces core/kernels/gpu/device_stream.cpp: a single stream of the stand-in for CUDA for all execution spaces, and
/// a capability that tests choose.
namespace mylos::cuda {

void* stream_of(const ExecutionSpace&) {
  static cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    if (cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, 0) != cudaSuccess) std::abort();
    return made;
  }();
  return stream;
}

int capability_of(const ExecutionSpace&) { return stand_in::attention_state().capability; }

/// Nothing written by an earlier launch is left, because another kernel may have used the memory.
void* scratch_of(const ExecutionSpace&, std::size_t bytes) {
  static std::vector<std::byte> scratch;
  stand_in::attention_state().scratch = std::max(stand_in::attention_state().scratch, bytes);
  scratch.assign(std::max(bytes, scratch.size()), std::byte{0xFF});
  return scratch.data();
}

}  // namespace mylos::cuda
