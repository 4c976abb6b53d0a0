#pragma once

#include "core/device.hpp"
#include "parallel/communicator/communicator.hpp"
#include "parallel/communicator/exchanges/exchange_size.hpp"

#include <array>
#include <cstddef>

/// The sums of rank_sum.hpp as kernels, in the same order and with the same bits.
namespace mylos::parallel {

/// The arrays to be summed, in device memory, in the order of ranks.
struct DeviceParts {
  std::array<const void*, most_parts> part{};
  std::size_t count = 0;
};

/// Computes sums[i] = the sum over parts of their element i, for i in [0, count); launched on `space`. `sums` may alias
/// one of the parts. For types and errors see with_sum_types.
void sum_over_ranks(const ExecutionSpace& space, ElementType type, const DeviceParts& parts, std::size_t count,
                    ElementType sum_type, void* sums);

}  // namespace mylos::parallel
