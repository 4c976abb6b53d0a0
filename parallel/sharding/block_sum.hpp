#pragma once

#include "core/parameters.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Complete subtrees of a balanced binary tree over blocks that together cover [begin, end), from left to right. Each
/// begins at a multiple of its size, a power of two. There are at most about 2 log2 of the number of blocks.
struct BlockSubtree {
  std::size_t begin = 0, size = 1;
};
std::vector<BlockSubtree> whole_subtrees(std::size_t begin, std::size_t end);

/// Sums values over all ranks, one value for each block of each rank's slices (ShardingStrategy::sum_of_blocks). Each
/// unit is summed as a balanced binary tree over its blocks, regardless of how slices are cut; then units are added in
/// order. A rank sums its complete subtrees and sends only these sums. Collective; the result has the same bits on
/// every rank and for any number of ranks.
double tree_sum_of_blocks(Communicator& ranks, const ParameterTable& table, std::span<const double> values);

}  // namespace mylos::parallel
