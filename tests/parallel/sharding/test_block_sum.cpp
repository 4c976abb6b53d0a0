#include "parallel/sharding/block_sum.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/launch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
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

double tree_sum(Communicator& ranks, const ParameterTable& table) {
  const ExecutionSpace space;
  const std::vector<double> own = values_of(table, ranks.rank(), ranks.size());
  const Vector<double> values("test::values", own.size());
  const auto host = Kokkos::create_mirror_view(values);
  std::ranges::copy(own, host.data());
  Kokkos::deep_copy(values, host);
  const TreeBlockSum add(ranks, table);
  const Vector<double> sum("test::sum", 1);
  double total = 0.0;
  for (int turn = 0; turn < 2; ++turn) {  // the second one must not find sums of the first
    add(space, values, sum);
    total = tests::host_values(sum)[0];
  }
  return total;
}

/// Returns the sum of values [begin, begin + size) as a balanced tree; `size` is a power of two, and values beyond the
/// end are left out.
double balanced_sum(std::span<const double> values, std::size_t begin, std::size_t size) {
  if (size == 1) return values[begin];
  const double left = balanced_sum(values, begin, size / 2);
  return begin + size / 2 < values.size() ? left + balanced_sum(values, begin + size / 2, size / 2) : left;
}

/// The sum of the trees of all units.
double expected_sum(const ParameterTable& table) {
  const std::vector<double> values = values_of(table, 0, 1);
  std::size_t first = 0;
  double sum = 0.0;
  for (const ParameterUnit& unit : table.units()) {
    const std::size_t blocks = (unit.size + slice_block - 1) / slice_block;
    sum += balanced_sum(std::span(values).subspan(first, blocks), 0, std::bit_ceil(blocks));
    first += (shard_size(unit.size, 1) + slice_block - 1) / slice_block;
  }
  return sum;
}

TEST(BlockSum, HasTheSameBitsOnAnyNumberOfRanks) {
  const ParameterTable table = uneven_table();
  const double expected = expected_sum(table);
  EXPECT_EQ(tree_sum(*make_self_communicator(), table), expected);
  EXPECT_EQ(tree_sum(tests::launch().world(), table), expected);
  double in_order = 0.0;
  for (const double value : values_of(table, 0, 1)) in_order += value;
  EXPECT_NE(expected, in_order) << "the test would not notice another order";
  EXPECT_NEAR(expected, in_order, 1e-9 * in_order);
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
