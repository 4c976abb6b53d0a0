#include "parallel/communicator/nccl/nccl_streams.hpp"

namespace mylos::parallel {

cudaStream_t stream_of(const ExecutionSpace& space) { return space.cuda_stream(); }

ExecutionSpace space_over(cudaStream_t stream) { return ExecutionSpace(stream); }

void launch_sum(const ExecutionSpace& space, cudaStream_t, ElementType type, const DeviceParts& parts,
                std::size_t count, ElementType sum_type, void* sums) {
  sum_over_ranks(space, type, parts, count, sum_type, sums);
}

}  // namespace mylos::parallel
