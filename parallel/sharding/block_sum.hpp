#pragma once

#include "core/parameters.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace mylos::parallel {

/// The whole subtrees of a balanced binary tree over blocks that cover [begin, end), from left to right: each begins at
/// a multiple of its size, a power of two. About twice the logarithm of the number of blocks at the most.
struct BlockSubtree {
  std::size_t begin = 0, size = 1;
};
std::vector<BlockSubtree> whole_subtrees(std::size_t begin, std::size_t end);

/// The sum of values that each rank has for the blocks of its slices of all units (ShardingStrategy::sum_of_blocks):
/// each unit's as a balanced binary tree over its blocks, wherever slices are cut, then units in order. A rank adds its
/// whole subtrees and sends no more than those to the others. Collective; the same bits on every rank, and for any
/// number of ranks.
double tree_sum_of_blocks(Communicator& ranks, const ParameterTable& table, std::span<const double> values);

}  // namespace mylos::parallel
