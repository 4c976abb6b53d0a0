#pragma once

#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <span>

namespace mylos::parallel {

/// sums[i] = the sum over ranks of parts[rank][i] for i in [0, count), in the order that Communicator promises:
/// ((0 + 1) + (2 + 3)) + ..., a last odd one carried up. Host memory; `sums` may be one of the parts. `type` is that of
/// the parts; bfloat16 is summed in float, and rounded where `sums` is bfloat16 too. Partial sums in float may be
/// rounded to bfloat16 likewise.
void sum_over_ranks(ElementType type, std::span<const void* const> parts, std::size_t count, ElementType sum_type,
                    void* sums);

}  // namespace mylos::parallel
