#include "train/engine/memory/rank_layout.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::train {
namespace {

using parallel::StrategyKind;
using testing::HasSubstr;

std::vector<parallel::RankPlacement> on_nodes(const std::vector<std::size_t>& nodes) {
  std::vector<parallel::RankPlacement> placements;
  for (const std::size_t node : nodes)
    placements.push_back({.host = "", .process = 0, .node = node, .rank_of_node = 0});
  return placements;
}

TEST(CountRanks, CountsNodesAndTheirRanks) {
  const RankCounts one = count_ranks(on_nodes({0}));
  EXPECT_EQ(one.ranks, 1u);
  EXPECT_EQ(one.nodes, 1u);
  EXPECT_EQ(one.of_node, 1u);
  const RankCounts two = count_ranks(on_nodes({0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(two.ranks, 6u);
  EXPECT_EQ(two.nodes, 2u);
  EXPECT_EQ(two.of_node, 3u);
  EXPECT_EQ(count_ranks(on_nodes({0, 0, 0, 1, 1})).of_node, 0u) << "unlike nodes";
  EXPECT_EQ(count_ranks(on_nodes({0, 1, 0, 1})).of_node, 0u) << "ranks dealt in turn";
  EXPECT_EQ(count_ranks(on_nodes({0, 0, 0, 1})).of_node, 0u);
}

TEST(LayOut, GivesEachModeItsGroups) {
  const RankCounts counts{.ranks = 6, .nodes = 2, .of_node = 3};
  EXPECT_EQ(lay_out({}, StrategyKind::replicated, counts).shards, 1u);
  EXPECT_EQ(lay_out({}, StrategyKind::sharded_optimizer, counts).shards, 6u);
  EXPECT_EQ(lay_out({}, StrategyKind::sharded_gradients, counts).shards, 6u);
  EXPECT_EQ(lay_out({}, StrategyKind::sharded, counts).shards, 6u);
  EXPECT_EQ(lay_out({}, StrategyKind::hybrid, counts).shards, 3u) << "a node's";
  TrainConfig config;
  config.parallel.shard_size = 2;
  EXPECT_EQ(lay_out(config, StrategyKind::hybrid, counts).shards, 2u);
  EXPECT_EQ(lay_out(config, StrategyKind::hybrid, counts).split.ranks, 6u);
  EXPECT_EQ(lay_out(config, StrategyKind::hybrid, counts).split.micro_batch_groups, 0u);
}

TEST(LayOut, RefusesShardSizesThatDoNotFit) {
  TrainConfig config;
  config.parallel.shard_size = 4;
  EXPECT_EQ(tests::error_of([&] { lay_out(config, StrategyKind::hybrid, {.ranks = 6, .nodes = 1, .of_node = 6}); }),
            "`shard-size 4`: does not divide the 6 ranks; use a number that does");
  EXPECT_EQ(tests::error_of([&] { lay_out(config, StrategyKind::sharded, {.ranks = 4}); }),
            "`shard-size 4`: belongs to `mode hybrid`, and this run's is sharded; leave one of them out");
  EXPECT_THAT(tests::error_of([&] { lay_out({}, StrategyKind::hybrid, {.ranks = 5, .nodes = 2, .of_node = 0}); }),
              HasSubstr("give the ranks per copy of the model with `shard-size`"));
}

TrainConfig deterministic() {
  TrainConfig config;
  config.parallel.deterministic = true;
  return config;
}

TEST(LayOut, DeterministicLeavesFollowTheModesSums) {
  const RankCounts counts{.ranks = 4, .nodes = 2, .of_node = 2};
  for (const auto& [strategy, together] : {std::pair{StrategyKind::replicated, 1u},
                                           {StrategyKind::sharded_optimizer, 1u},
                                           {StrategyKind::sharded_gradients, 4u},
                                           {StrategyKind::sharded, 4u},
                                           {StrategyKind::hybrid, 2u}}) {
    const StepSplit split = lay_out(deterministic(), strategy, counts).split;
    EXPECT_EQ(split.micro_batch_groups, 8u);
    EXPECT_EQ(split.reduced_together, together) << to_string(strategy);
  }
}

TEST(LayOut, TheLongestSamplesComeFirstOnDevices) {
  for (const TrainConfig& config : {TrainConfig{}, deterministic()}) {
    RankCounts counts{.ranks = 2};
    counts.on_host = false;
    EXPECT_TRUE(lay_out(config, StrategyKind::replicated, counts).split.longest_first);
    counts.on_host = true;
    EXPECT_FALSE(lay_out(config, StrategyKind::replicated, counts).split.longest_first);
  }
}

TEST(LayOut, DeterministicRefusesWhatItCannotKeep) {
  const auto error = [](const TrainConfig& config, StrategyKind strategy, const RankCounts& counts) {
    return tests::error_of([&] { lay_out(config, strategy, counts); });
  };
  EXPECT_EQ(error(deterministic(), StrategyKind::replicated, {.ranks = 3}),
            "`deterministic`: 8 micro-batch groups cannot be divided among 3 ranks; use 1, 2, 4 ... up to 8 ranks");
  EXPECT_EQ(error(deterministic(), StrategyKind::replicated, {.ranks = 16}),
            "`deterministic`: 8 micro-batch groups cannot be divided among 16 ranks; use 1, 2, 4 ... up to 8 ranks, or "
            "`leaves 16`");
  TrainConfig micro_batch_groups = deterministic();
  micro_batch_groups.parallel.micro_batch_groups = 12;
  EXPECT_EQ(error(micro_batch_groups, StrategyKind::replicated, {.ranks = 4}),
            "`leaves 12`: must be a power of two, because sums are binary trees");
  TrainConfig micro = deterministic();
  micro.micro_batch = 2;
  EXPECT_EQ(error(micro, StrategyKind::sharded, {.ranks = 2}),
            "`deterministic`: its 8 micro-batch groups are the micro-batches of every step; leave out `micro-batch`");
  micro.micro_batch = 0;
  micro.micro_tokens = 512;
  EXPECT_THAT(error(micro, StrategyKind::sharded, {.ranks = 2}), HasSubstr("leave out `micro-tokens`"));
}

}  // namespace
}  // namespace mylos::train
