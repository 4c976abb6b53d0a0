#include "parallel/sharding/block_sum.hpp"

#include "tests/support/launch.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace mylos::parallel {
namespace {

/// Returns units of whole and partial blocks, whose slices differ for each number of ranks.
ParameterTable uneven_table() {
  ParameterTable::Builder builder;
  std::size_t index = 0;
  for (const std::size_t size :
       {10 * slice_block, 37 * slice_block + 5, std::size_t{3}, 64 * slice_block, 11 * slice_block}) {
    const std::string name = "unit" + std::to_string(index++);
    builder.unit(name).tensor(name, {size}, {});
  }
  return builder.build();
}

/// Returns the values of one of `ranks` ranks for the blocks of its slices.
std::vector<double> values_of(const ParameterTable& table, std::size_t rank, std::size_t ranks) {
  std::vector<double> values;
  for (const ParameterUnit& unit : table.units()) {
    const std::size_t slice = (shard_size(unit.size, ranks) + slice_block - 1) / slice_block;
    for (std::size_t block = rank * slice; block < (rank + 1) * slice; ++block) {
      const bool is_padding = block * slice_block >= unit.size;
      values.push_back(
          is_padding ? 0.0 : std::exp2(static_cast<double>(block % 40)) / 3.0 + 1.0 / static_cast<double>(7 + block));
    }
  }
  return values;
}

TEST(BlockSum, HasTheSameBitsOnAnyNumberOfRanks) {
  const ParameterTable table = uneven_table();
  Communicator& ranks = tests::launch().world();
  const auto self = make_self_communicator();
  const double alone = tree_sum_of_blocks(*self, table, values_of(table, 0, 1));
  EXPECT_EQ(tree_sum_of_blocks(ranks, table, values_of(table, ranks.rank(), ranks.size())), alone);
  double in_order = 0.0;
  for (const double value : values_of(table, 0, 1)) in_order += value;
  EXPECT_NEAR(alone, in_order, 1e-9 * in_order);
}

TEST(BlockSum, WholeSubtreesCoverARangeAndAreFew) {
  for (std::size_t begin = 0; begin < 70; ++begin) {
    for (std::size_t end = begin; end < 200; ++end) {
      std::size_t at = begin;
      const std::vector<BlockSubtree> subtrees = whole_subtrees(begin, end);
      for (const BlockSubtree& subtree : subtrees) {
        EXPECT_EQ(subtree.begin, at);
        EXPECT_EQ(subtree.begin % subtree.size, 0u);
        at += subtree.size;
      }
      EXPECT_EQ(at, end);
      EXPECT_LE(subtrees.size(), 16u);
    }
  }
}

}  // namespace
}  // namespace mylos::parallel
