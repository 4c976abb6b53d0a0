#pragma once

#include "core/device.hpp"
#include "parallel/communicator/device_rank_sum.hpp"

#include <cuda_runtime.h>

#include <cstddef>

/// Kokkos' side of NCCL's operations. It is apart from them so that tests can run them over streams that are no
/// device's.
namespace mylos::parallel {

/// The stream that launches on `space` go to.
cudaStream_t stream_of(const ExecutionSpace& space);

/// An instance whose launches go to `stream`.
ExecutionSpace space_over(cudaStream_t stream);

/// sum_over_ranks, launched on `space`, which is over `stream`.
void launch_sum(const ExecutionSpace& space, cudaStream_t stream, ElementType type, const DeviceParts& parts,
                std::size_t count, ElementType sum_type, void* sums);

}  // namespace mylos::parallel
