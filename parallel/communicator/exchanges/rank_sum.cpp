#include "parallel/communicator/exchanges/rank_sum.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace mylos::parallel {
namespace {

/// Elements summed at a time, so that partial sums of a tree stay in the L1 cache.
constexpr std::size_t block = 1024;

template <class Sum>
using Block = std::array<Sum, block>;

template <class Part, class Sum>
void sum_block(const Part* const* parts, std::size_t ranks, std::size_t count, Sum* sums) {
  if (ranks == 1) {
    for (std::size_t i = 0; i < count; ++i) sums[i] = static_cast<Sum>(parts[0][i]);
    return;
  }
  if (ranks == 2) {
    const Part* const first = parts[0];
    const Part* const second = parts[1];
    for (std::size_t i = 0; i < count; ++i) sums[i] = static_cast<Sum>(first[i]) + static_cast<Sum>(second[i]);
    return;
  }
  const std::size_t half = std::bit_ceil(ranks) / 2;
  Block<Sum> right;
  sum_block(parts, half, count, sums);
  sum_block(parts + half, ranks - half, count, right.data());
  for (std::size_t i = 0; i < count; ++i) sums[i] += right[i];
}

template <class Part, class Sum, class Result>
void sum_blocks(std::span<const void* const> parts, std::size_t count, void* sums) {
  std::vector<const Part*> at(parts.size());
  Block<Sum> partial;
  for (std::size_t begin = 0; begin < count; begin += block) {
    const std::size_t size = std::min(block, count - begin);
    for (std::size_t rank = 0; rank < at.size(); ++rank) at[rank] = static_cast<const Part*>(parts[rank]) + begin;
    sum_block(at.data(), at.size(), size, partial.data());
    Result* const result = static_cast<Result*>(sums) + begin;
    for (std::size_t i = 0; i < size; ++i) result[i] = static_cast<Result>(partial[i]);
  }
}

}  // namespace

void sum_over_ranks(ElementType type, std::span<const void* const> parts, std::size_t count, ElementType sum_type,
                    void* sums) {
  with_sum_types(type, sum_type, [&](auto types) {
    using Types = decltype(types);
    sum_blocks<typename Types::Part, typename Types::Sum, typename Types::Result>(parts, count, sums);
  });
}

}  // namespace mylos::parallel
