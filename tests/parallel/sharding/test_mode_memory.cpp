#include "parallel/sharding/sharding_strategy.hpp"

#include <gtest/gtest.h>

namespace mylos::parallel {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

/// A layer of BERT-large, and a unit that is smaller than a block.
ParameterTable two_units() {
  ParameterTable::Builder builder;
  builder.unit("layer").tensor("layer", {12'596'224}, {});
  builder.unit("head").tensor("head", {1000}, {});
  return builder.build();
}

TEST(ModeMemory, IsThatOfTheElementsOnAHost) {
  const ParameterTable table = two_units();
  const std::size_t elements = shard_size(12'596'224, 1) + shard_size(1000, 1);
  const ModeMemory memory = mode_memory({.kind = ModeKind::replicated}, 1, table, Precision::bfloat16);
  EXPECT_EQ(memory.slices, 4 * elements);
  EXPECT_EQ(memory.values, 6 * elements) << "with master weights";
  EXPECT_EQ(memory.gradients, 4 * elements);
}

TEST(ModeMemory, CountsWholeBlocksOfEachArrayOnADevice) {
  const ParameterTable table = two_units();
  const ModeMemory whole = mode_memory({.kind = ModeKind::replicated}, 1, table, Precision::bfloat16, 2 * mib);
  EXPECT_EQ(whole.slices, (50 + 2) * mib) << "48.05 MiB take 50";
  EXPECT_EQ(whole.values, (26 + 2) * mib + whole.slices);
  EXPECT_EQ(whole.gradients, (50 + 2) * mib);
  const ModeMemory sharded = mode_memory({.kind = ModeKind::sharded}, 2, table, Precision::bfloat16, 2 * mib);
  EXPECT_EQ(sharded.slices, (26 + 2) * mib);
  EXPECT_EQ(sharded.values, 2 * 26 * mib + sharded.slices) << "two units at a time";
  EXPECT_EQ(sharded.gradients, sharded.slices + 2 * 50 * mib);
}

}  // namespace
}  // namespace mylos::parallel
