#pragma once

#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <span>

namespace mylos::parallel {

/// Computes sums[i] = the sum over ranks of parts[rank][i] for i in [0, count), in the order that Communicator
/// promises: ((0 + 1) + (2 + 3)) + ...; a last odd one is carried up. All memory is on the host; `sums` may alias one
/// of the parts. `type` is the type of the parts. bfloat16 is summed in float, and rounded if `sums` is bfloat16 too;
/// float parts may also be rounded to bfloat16.
void sum_over_ranks(ElementType type, std::span<const void* const> parts, std::size_t count, ElementType sum_type,
                    void* sums);

}  // namespace mylos::parallel
