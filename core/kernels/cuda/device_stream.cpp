#include "core/kernels/cuda/device_stream.hpp"

namespace mylos::cuda {

void* stream_of(const ExecutionSpace& space) { return space.cuda_stream(); }

}  // namespace mylos::cuda
