#pragma once

#include "core/device.hpp"
#include "parallel/communicator/communicator.hpp"
#include "parallel/communicator/exchange_size.hpp"

#include <array>
#include <cstddef>

/// The sums of rank_sum.hpp as kernels, in the same order and so with the same bits.
namespace mylos::parallel {

/// The arrays of a sum, in device memory and in the order of ranks.
struct DeviceParts {
  std::array<const void*, most_parts> part{};
  std::size_t count = 0;
};

/// sums[i] = the sum over parts of their element i, for i in [0, count); launched on `space`. `sums` may be one of the
/// parts. `type` is that of the parts; bfloat16 is summed in float, and rounded where `sums` is bfloat16 too. Partial
/// sums in float may be rounded to bfloat16 likewise. Errors: std::invalid_argument for bytes.
void sum_over_ranks(const ExecutionSpace& space, ElementType type, const DeviceParts& parts, std::size_t count,
                    ElementType sum_type, void* sums);

}  // namespace mylos::parallel
