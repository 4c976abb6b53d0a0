#pragma once

#include "core/device.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>

/// The sums of rank_sum.hpp as kernels, in the same order and so with the same bits.
namespace mylos::parallel {

/// The sum of value(0) ... value(ranks - 1) in the order that Communicator promises. Sums of whole subtrees wait at
/// their level for their neighbours, as a binary counter's digits do for their carries.
template <class Sum, class Value>
KOKKOS_INLINE_FUNCTION Sum tree_sum(std::size_t ranks, const Value& value) {
  constexpr int levels = 24;
  Sum waiting[levels];
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    Sum sum = value(rank);
    int level = 0;
    for (; (rank >> level & 1u) != 0; ++level) sum = waiting[level] + sum;
    waiting[level] = sum;
  }
  int level = 0;
  while ((ranks >> level & 1u) == 0) ++level;
  Sum sum = waiting[level];
  for (++level; ranks >> level != 0; ++level) {
    if ((ranks >> level & 1u) != 0) sum = waiting[level] + sum;
  }
  return sum;
}

/// What the ranks of a group give for a sum, in device memory.
struct RankParts {
  const void* own = nullptr;
  const void* received = nullptr;  ///< the others', in the order of ranks
  std::size_t stride = 0;          ///< elements from one of the received to the next
  std::size_t rank = 0;            ///< whose `own` is
  std::size_t ranks = 1;           ///< below 2^24
};

/// sums[i] = the sum over ranks of their element i, for i in [0, count); launched on `space`. `sums` may be `own`.
/// `type` is that of the parts; bfloat16 is summed in float, and rounded where `sums` is bfloat16 too. Errors:
/// std::invalid_argument for bytes.
void sum_over_ranks(const ExecutionSpace& space, ElementType type, const RankParts& parts, std::size_t count,
                    ElementType sum_type, void* sums);

}  // namespace mylos::parallel
