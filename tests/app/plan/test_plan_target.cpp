#include "app/plan/plan_target.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>

namespace mylos::tests {
namespace {

/// Collectives take what the kind of GPU says. Ordered sums add channels of 12 MiB: 32 for each peer if all ranks are
/// on one node. Otherwise they add 2 for each peer on the node, and 128 MiB for the network.
TEST(PlannedConnections, AreThoseOfAllThreeGroupsInHybrid) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  const train::RankCounts two_nodes{.ranks = 8, .nodes = 2, .of_node = 4};
  const train::RankCounts four_nodes{.ranks = 16, .nodes = 4, .of_node = 4};
  const auto of = [](const train::RankCounts& ranks, std::optional<std::size_t> shards, bool sums_in_order) {
    return app::nccl_bytes({.connections = 288 * mebibyte}, ranks, shards, sums_in_order) / mebibyte;
  };
  EXPECT_EQ(of(two_nodes, std::nullopt, false), 288u);
  EXPECT_EQ(of(two_nodes, 4, false), 288u + 288u + 288u);
  EXPECT_EQ(of(two_nodes, 8, false), 288u) << "a single group of ranks, and copies of one rank";
  EXPECT_EQ(of(two_nodes, std::nullopt, true), 288u + 3 * 2 * 12 + 128);
  const std::size_t of_all = 288u + 3 * 2 * 12 + 128;
  EXPECT_EQ(of(two_nodes, 4, true), of_all + (288u + 3 * 32 * 12) + (288u + 128)) << "a node, and 2 ranks of 2 nodes";
  EXPECT_EQ(of(two_nodes, 2, true), of_all + (288u + 32 * 12) + (288u + 2 * 12 + 128)) << "2 of a node, 4 of 2 nodes";
  EXPECT_EQ(of(four_nodes, 8, true), of_all + of_all + (288u + 128)) << "2 nodes, and 2 ranks of 2 nodes";
  EXPECT_EQ(of(two_nodes, 1, true), of_all) << "the ranks that hold copies are all";
  EXPECT_EQ(of({.ranks = 1, .nodes = 1, .of_node = 1}, std::nullopt, true), 0u);
}

}  // namespace
}  // namespace mylos::tests
