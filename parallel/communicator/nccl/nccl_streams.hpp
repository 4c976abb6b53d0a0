#pragma once

#include "core/gpu_runtime.hpp"
#include "parallel/communicator/exchanges/device_rank_sum.hpp"

#include <cstddef>

/// The part of the NCCL operations that needs Kokkos. It is separate so that tests can run them over simulated streams.
namespace mylos::parallel {

/// Returns the stream that `space` launches on.
cudaStream_t stream_of(const ExecutionSpace& space);

/// Returns an execution space that launches on `stream`.
ExecutionSpace space_over(cudaStream_t stream);

/// Launches sum_over_ranks on `space`, which uses `stream`.
void launch_sum(const ExecutionSpace& space, cudaStream_t stream, ElementType type, const DeviceParts& parts,
                std::size_t count, ElementType sum_type, void* sums);

}  // namespace mylos::parallel
