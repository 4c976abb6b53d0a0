#include "parallel/planning/strategy_record.hpp"

#include "parallel/planning/counting_transport.hpp"
#include "tests/parallel/communicator/ranks_on_nodes.hpp"
#include "tests/parallel/sharding/strategy_run.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

/// The calls of a step that are recorded without other ranks, against what the ranks of this program send.
namespace mylos::parallel {
namespace {

using ::testing::ElementsAre;
using Kind = CollectiveCall::Kind;

constexpr std::size_t bucket = std::size_t{1} << 12;

/// Returns what this rank sends in calls of a step, as the counting transport counts it.
Traffic count_calls(const std::vector<CollectiveCall>& calls, std::size_t shards,
                    const std::vector<std::size_t>& nodes) {
  const std::size_t rank = tests::launch().world().rank();
  std::vector<std::byte> array(std::size_t{1} << 20);
  Traffic all;
  for (const CollectiveCall& call : calls) {
    const Members members = groups_of(rank, nodes.size(), shards)[call.group];
    std::vector<std::size_t> nodes_of_group;
    for (const std::size_t member : members) nodes_of_group.push_back(nodes[member]);
    const auto position = std::ranges::find(members, rank) - members.begin();
    const std::vector<ExchangeCount> counts =
        CountingRanks(nodes_of_group, CountingRanks::Data::counted)
            .run([&](Transport& transport, const RankGroup& group) {
              return make_exchange(call, transport, group, {.bucket = bucket}, array.data());
            });
    const ExchangeCount& mine = counts[static_cast<std::size_t>(position)];
    all.messages += mine.messages;
    all.bytes += mine.bytes;
    all.network_bytes += mine.network_sent;
  }
  return all;
}

/// Returns what this rank sends in the third step of a run.
Traffic traffic_of_step(const StrategySettings& settings, Precision precision, const std::vector<std::size_t>& nodes,
                        const FrozenNames& frozen) {
  RanksOnNodes on_nodes(nodes);
  on_nodes.ranks->set_bucket(bucket);
  StrategyRun run(settings, precision, 2, *on_nodes.ranks, {}, frozen);
  std::size_t blocks = 0;
  for (const ParameterSlice& slice : run.strategy().slices()) {
    blocks += (slice.end - slice.begin + slice_block - 1) / slice_block;
  }
  Traffic before;
  for (std::size_t step = 0; step < 3; ++step) {
    on_nodes.ranks->barrier("the end of what was begun");
    before = traffic();
    run.step(step);
    run.strategy().sum_of_blocks(ExecutionSpace(), Vector<double>("test::blocks", blocks),
                                 Vector<double>("test::sum", 1));
    run.update();
  }
  on_nodes.ranks->barrier("the end of what was begun");
  return traffic() - before;
}

class StepCallsOfFrozen : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Units, StepCallsOfFrozen, ::testing::Range(std::size_t{0}, std::size(frozen_units)));

TEST_P(StepCallsOfFrozen, CountWhatRanksSend) {
  const Communicator& world = tests::launch().world();
  const FrozenNames& frozen = frozen_units[GetParam()];
  const ParameterTable table = make_four_units(frozen);
  for (const std::vector<std::size_t>& nodes : node_layouts(world.size())) {
    for (const StrategyKind kind : {StrategyKind::replicated, StrategyKind::sharded_optimizer,
                                    StrategyKind::sharded_gradients, StrategyKind::sharded, StrategyKind::hybrid}) {
      if (kind == StrategyKind::hybrid && world.size() % 2 != 0) continue;
      for (const bool bfloat16_gradients : {false, true}) {
        const StrategySettings settings{kind, bfloat16_gradients, !bfloat16_gradients, 2};
        const Precision precision = bfloat16_gradients ? Precision::bfloat16 : Precision::float32;
        SCOPED_TRACE(fmt::format("{} on {} nodes{}", to_string(kind), NodeMap(nodes).nodes(),
                                 bfloat16_gradients ? ", bfloat16" : ""));
        const std::size_t shards = ranks_that_split(kind, 2, world.size());
        const std::vector<CollectiveCall> calls =
            calls_of_step({settings, shards, world.size() / shards, precision, table});
        const Traffic sent = traffic_of_step(settings, precision, nodes, frozen);
        EXPECT_EQ(sent, count_calls(calls, shards, nodes));
        EXPECT_EQ(sent.messages > 0, world.size() > 1);
      }
    }
  }
}

/// Returns the calls of a step of one micro-batch on four ranks as texts: kind, group and bytes. The model has four
/// units of 16 KiB, each of a weight (12 KiB) and a bias. The middle ones may have adapters of 4 KiB.
std::vector<std::string> calls_on_four_ranks(StrategyKind kind, const FrozenNames& frozen = {},
                                             Precision precision = Precision::float32) {
  ParameterTable::Builder builder;
  for (const char* const name : {"a", "b", "c", "d"}) {
    builder.unit(name).tensor(name + std::string(".weight"), {3 * slice_block}, {});
    builder.tensor(name + std::string(".bias"), {slice_block}, {});
  }
  ParameterTable table = builder.build();
  const auto is_frozen = [&](const ParameterTensor& tensor) { return frozen.contain(table, tensor); };
  if (frozen.adapted) {
    table.adapt({adapter_tensor("b.lora", 1, slice_block), adapter_tensor("c.lora", 2, slice_block)}, is_frozen);
  } else {
    table.freeze(is_frozen);
  }
  std::vector<std::string> texts;
  const std::size_t shards = ranks_that_split(kind, 2, 4);
  for (const CollectiveCall& call : calls_of_step({{.kind = kind}, shards, 4 / shards, precision, table})) {
    const char* const name = call.kind == Kind::all_reduce       ? "all-reduce"
                             : call.kind == Kind::reduce_scatter ? "reduce-scatter"
                                                                 : "all-gather";
    texts.push_back(
        fmt::format("{} {} {}", name, static_cast<std::size_t>(call.group), call.count * bytes_of(call.type)));
  }
  return texts;
}

TEST(StepCalls, AreThoseOfTheMode) {
  const std::string whole = "all-reduce 2 16384", scattered = "reduce-scatter 1 16384", gathered = "all-gather 1 16384",
                    norm = "all-reduce 1 8", slice = "all-reduce 2 8192";
  EXPECT_THAT(calls_on_four_ranks(StrategyKind::replicated), ElementsAre(whole, whole, whole, whole));
  EXPECT_THAT(calls_on_four_ranks(StrategyKind::sharded_optimizer),
              ElementsAre(scattered, scattered, scattered, scattered, norm, gathered, gathered, gathered, gathered));
  // The first unit is gathered after the update before, and the last two are kept for the backward pass.
  EXPECT_THAT(calls_on_four_ranks(StrategyKind::sharded),
              ElementsAre(gathered, gathered, gathered, scattered, gathered, scattered, gathered, scattered, scattered,
                          norm, gathered));
  const std::vector<std::string> hybrid = calls_on_four_ranks(StrategyKind::hybrid);
  EXPECT_EQ(std::ranges::count(hybrid, gathered), 6);
  EXPECT_EQ(std::ranges::count(hybrid, scattered), 4);
  EXPECT_EQ(std::ranges::count(hybrid, slice), 4);
  EXPECT_EQ(hybrid.size(), 15u) << "and the norm";
}

/// With the first three of four units frozen, only the last one's gradients and values are exchanged. Values of shards
/// are gathered once: the backward pass ends at the last unit, and updates leave the first one as it is.
TEST(StepCalls, OfFrozenUnitsAreOnlyGathers) {
  const auto calls = [](StrategyKind kind) { return calls_on_four_ranks(kind, {{"a", "b", "c"}}); };
  const std::string whole = "all-reduce 2 16384", scattered = "reduce-scatter 1 16384", gathered = "all-gather 1 16384",
                    norm = "all-reduce 1 8";
  EXPECT_THAT(calls(StrategyKind::replicated), ElementsAre(whole));
  EXPECT_THAT(calls(StrategyKind::sharded_optimizer), ElementsAre(scattered, norm, gathered));
  EXPECT_THAT(calls(StrategyKind::sharded_gradients), ElementsAre(scattered, norm, gathered));
  EXPECT_THAT(calls(StrategyKind::sharded), ElementsAre(gathered, gathered, gathered, gathered, scattered, norm));
}

/// Only what is trained is summed and gathered after an update; values of shards are gathered in two parts.
TEST(StepCalls, OfFrozenWeightsAreOnlyGathers) {
  const auto calls = [](StrategyKind kind) { return calls_on_four_ranks(kind, {{"b", "c.weight"}}); };
  const std::string norm = "all-reduce 1 8", gathered = "all-gather 1 16384", weight = "all-gather 1 12288",
                    bias = "all-gather 1 4096", scattered = "reduce-scatter 1 16384";
  const std::string bias_sum = "reduce-scatter 1 4096";
  EXPECT_THAT(calls(StrategyKind::replicated),
              ElementsAre("all-reduce 2 16384", "all-reduce 2 4096", "all-reduce 2 16384"));
  for (const StrategyKind kind : {StrategyKind::sharded_optimizer, StrategyKind::sharded_gradients}) {
    EXPECT_THAT(calls(kind), ElementsAre(scattered, bias_sum, scattered, norm, gathered, bias, gathered));
  }
  EXPECT_THAT(calls(StrategyKind::sharded), ElementsAre(gathered, bias, weight, gathered, scattered, gathered, bias_sum,
                                                        gathered, scattered, norm, gathered));
}

/// Of adapters of two units, 1,024 elements each, gradients are exchanged in float. What they adapt, 4,096 elements a
/// unit, is only gathered, in 16 bits, and in the backward pass down to the first adapter.
TEST(StepCalls, OfAdaptersAreTheirGradientsAndGathersIn16Bits) {
  const auto calls = [](StrategyKind kind) {
    return calls_on_four_ranks(kind, {{"a", "b", "c", "d"}, true}, Precision::bfloat16);
  };
  const std::string norm = "all-reduce 1 8", frozen = "all-gather 1 8192", adapter = "all-gather 1 2048",
                    sum = "reduce-scatter 1 4096";
  EXPECT_THAT(calls(StrategyKind::replicated), ElementsAre("all-reduce 2 4096", "all-reduce 2 4096"));
  for (const StrategyKind kind : {StrategyKind::sharded_optimizer, StrategyKind::sharded_gradients}) {
    EXPECT_THAT(calls(kind), ElementsAre(sum, sum, norm, adapter, adapter));
  }
  for (const StrategyKind kind : {StrategyKind::sharded, StrategyKind::hybrid}) {
    const std::vector<std::string> all = calls(kind);
    EXPECT_EQ(std::ranges::count(all, frozen), 5) << "a to d forwards, and b backwards, as c is still in memory";
    EXPECT_EQ(std::ranges::count(all, adapter), 3) << "b and c forwards, and b backwards";
    EXPECT_EQ(std::ranges::count(all, sum), 2);
    EXPECT_EQ(all.size(), kind == StrategyKind::sharded ? 11u : 13u) << "and the norm, and sums of slices";
  }
}

TEST(GroupsOfARank, AreThoseOfAMesh) {
  const Members all = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_THAT(groups_of(5, 8, 2), ElementsAre(all, Members{4, 5}, Members{1, 3, 5, 7}));
  EXPECT_THAT(groups_of(1, 3, 3), ElementsAre(Members{0, 1, 2}, Members{0, 1, 2}, Members{1}));
  Communicator& world = tests::launch().world();
  for (std::size_t shard_size = 1; shard_size <= world.size(); ++shard_size) {
    if (world.size() % shard_size != 0) continue;
    const std::vector<Members> groups = groups_of(world.rank(), world.size(), shard_size);
    const Mesh mesh(world, shard_size);
    const Communicator* const made[] = {&mesh.world(), &mesh.shard(), &mesh.replicate()};
    for (std::size_t group = 0; group < groups.size(); ++group) {
      ASSERT_EQ(groups[group].size(), made[group]->size());
      EXPECT_EQ(groups[group][made[group]->rank()], world.rank());
    }
  }
}

}  // namespace
}  // namespace mylos::parallel
