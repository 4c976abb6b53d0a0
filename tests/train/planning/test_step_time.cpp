#include "train/planning/step_time.hpp"

#include "parallel/planning/counting_transport.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace mylos::train {
namespace {

using parallel::StrategyKind;

/// A rank moves 1 GB/s within a node of 4, and a node 0.25 GB/s.
constexpr Links links{.local = 1e9, .of_node = 4, .network = {.bandwidth = 0.25e9, .latency = 0.0}};
/// Ten units of 1 s forward, 2 s backward, 1 GB of values and 2 GB of gradients in float.
const std::vector<UnitWork> units(10, UnitWork{1.0, 2.0, 1e9, 2e9});
constexpr double rounding = 1e-4;  // the latency within a node, 2 us per message

ParameterTable table_of(std::size_t count) {
  ParameterTable::Builder builder;
  for (std::size_t unit = 0; unit < count; ++unit) {
    const std::string name = fmt::format("{}", unit);
    builder.unit(name).tensor(name, {1}, {});
  }
  return builder.build();
}

StepTime step_time(const StepLayout& layout, const Links& between, const std::vector<UnitWork>& work,
                   double optimizer) {
  return step_time(layout, between, table_of(work.size()), work, optimizer);
}

TEST(ExchangeCost, IsThePartOfTheOthersOverTheSlowestLink) {
  EXPECT_EQ(all_gather_cost(links, 1, 1e9).seconds, 0.0);
  EXPECT_NEAR(all_gather_cost(links, 2, 1e9).seconds, 0.5, rounding);
  EXPECT_NEAR(all_gather_cost(links, 4, 1e9).seconds, 0.75, rounding);
  EXPECT_NEAR(all_gather_cost(links, 8, 1e9).seconds, 0.875 / 0.25, rounding);
  EXPECT_NEAR(all_reduce_cost(links, 4, 1e9).seconds, 1.5, rounding);
  EXPECT_EQ(all_reduce_cost(links, 4, 1e9).node_sent, 0.0);
  EXPECT_EQ(all_reduce_cost(links, 8, 1e9).node_sent, 1.75e9);
}

TEST(ExchangeCost, CountsALatencyForEachOtherNodeOfTheRing) {
  Links slow = links;
  slow.network.latency = 1.0;
  EXPECT_NEAR(all_gather_cost(slow, 16, 0.0).seconds, 3.0, rounding);
  EXPECT_NEAR(all_gather_cost(slow, 4096, 0.0).seconds, 1023.0, rounding);
}

TEST(ExchangeCost, ByNodeIsThatOfTheNodeAndThenThatBetweenNodes) {
  Links by_node = links;
  by_node.by_node = true;
  EXPECT_NEAR(all_gather_cost(by_node, 4, 1e9).seconds, 0.75, rounding) << "one node";
  EXPECT_NEAR(all_gather_cost(by_node, 8, 1e9).seconds, 0.75 + 0.5 / 0.25, rounding);
  EXPECT_NEAR(reduce_scatter_cost(by_node, 8, 1e9, 2.0).seconds, 0.75 + 2.0 * 0.5 / 0.25, rounding);
  by_node.of_node = 1;
  EXPECT_NEAR(reduce_scatter_cost(by_node, 8, 1e9, 2.0).seconds, 0.875 / 0.25, rounding) << "no partial sums are sent";
}

/// Returns what exchanges over MPI send: per rank, and from the first node.
Exchanged counted(std::size_t ranks, std::size_t of_node, const parallel::CountingRanks::Make& make) {
  std::vector<std::size_t> nodes(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) nodes[rank] = rank / of_node;
  parallel::CountingRanks all(nodes, parallel::CountingRanks::Data::counted);
  Exchanged sent;
  for (std::size_t rank = 0; rank < of_node; ++rank) {
    const parallel::ExchangeCount count = all.run_alone(rank, make);
    sent.rank_sent += static_cast<double>(count.bytes) / static_cast<double>(of_node);
    sent.node_sent += static_cast<double>(count.network_sent);
  }
  return sent;
}

TEST(ExchangeCost, ByNodeSendsWhatExchangesOverMpiSend) {
  using namespace parallel;
  constexpr std::size_t count = std::size_t{3} << 20;  // of elements, divisible by all numbers of ranks
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(4 * count);
  std::byte* const array = memory.get();
  for (const std::size_t of_node : {1u, 2u, 4u, 8u}) {
    for (const std::size_t ranks : {8u, 24u, 64u, 512u}) {
      for (const ElementType type : {ElementType::float32, ElementType::bfloat16}) {
        SCOPED_TRACE(fmt::format("{} ranks, {} a node, elements of {} bytes", ranks, of_node, bytes_of(type)));
        const Links by_node{.of_node = of_node, .by_node = true};
        const double bytes = static_cast<double>(count * bytes_of(type)), partial = 4.0 / bytes_of(type);
        const auto expect = [&](const Exchanged& planned, const CountingRanks::Make& make) {
          const Exchanged sent = counted(ranks, of_node, make);
          EXPECT_NEAR(planned.rank_sent, sent.rank_sent, 1e-9 * bytes);
          EXPECT_NEAR(planned.node_sent, sent.node_sent, 1e-9 * bytes);
        };
        expect(all_gather_cost(by_node, ranks, bytes), [=](Transport& transport, const RankGroup& group) {
          const std::size_t part = count * bytes_of(type) / ranks;
          return make_all_gather(transport, group, {}, {ranks * part, part}, array + group.rank * part, array);
        });
        expect(reduce_scatter_cost(by_node, ranks, bytes, partial), [=](Transport& transport, const RankGroup& group) {
          return make_reduce_scatter(transport, group, {}, {type, array, divide(count, ranks), type, array});
        });
        expect(all_reduce_cost(by_node, ranks, bytes, partial), [=](Transport& transport, const RankGroup& group) {
          return make_all_reduce(transport, group, {}, type, count, array);
        });
      }
    }
  }
}

TEST(StepTime, OneRankWaitsForNobody) {
  for (const StrategyKind strategy :
       {StrategyKind::replicated, StrategyKind::sharded_optimizer, StrategyKind::sharded}) {
    const StepTime time = step_time({.strategy = strategy, .micro_batches = 3}, links, units, 5.0);
    EXPECT_DOUBLE_EQ(time.compute, 90.0);
    EXPECT_DOUBLE_EQ(time.exposed, 0.0);
    EXPECT_DOUBLE_EQ(time.total(), 95.0);
  }
}

TEST(StepTime, ReplicatedHidesAllButTheLastUnitsSum) {
  // 2 GB on 2 ranks take 2 x 0.5 x 2 s, as long as the next unit's backward pass.
  const StepTime time = step_time({.ranks = 2}, links, units, 0.0);
  EXPECT_NEAR(time.exchange, 20.0, 10 * rounding);
  EXPECT_NEAR(time.exposed, 2.0, 20 * rounding);
}

TEST(StepTime, NothingHidesWhatTheComputingProcessorsCopy) {
  Links copied = links;
  copied.copies = true;
  for (const StrategyKind strategy : {StrategyKind::replicated, StrategyKind::sharded}) {
    const StepTime time =
        step_time({.strategy = strategy, .ranks = 2, .shards = 2, .micro_batches = 2}, copied, units, 0.0);
    EXPECT_NEAR(time.exposed, time.exchange, 1e-6);
  }
  // Between nodes, the network moves them.
  const StepTime apart = step_time({.ranks = 8}, copied, units, 0.0);
  EXPECT_LT(apart.exposed, apart.exchange - 10.0);
}

TEST(StepTime, AnExchangeTakesItsShareOfTheComputingBesideIt) {
  Links contended = links;
  contended.contention = 0.5;
  // 2 s for each unit's sum, during which the next unit's backward pass of 2 s takes 3 s, so 1 s of it is computed in
  // the meantime.
  const StepTime time = step_time({.ranks = 2}, contended, units, 0.0);
  EXPECT_NEAR(time.compute, 30.0, 1e-9);
  EXPECT_NEAR(time.exchange, 20.0, 10 * rounding);
  EXPECT_NEAR(time.exposed, 9 * 1.0 + 2.0, 40 * rounding);
  // Longer sums are waited for, and the computation is finished by then.
  const std::vector<UnitWork> large(10, UnitWork{1.0, 2.0, 1e9, 8e9});
  EXPECT_NEAR(step_time({.ranks = 2}, contended, large, 0.0).total(), 10.0 + 2.0 + 80.0, 100 * rounding);
}

TEST(StepTime, ReplicatedSumsOnlyOnceAStep) {
  const StepTime time = step_time({.ranks = 2, .micro_batches = 4}, links, units, 0.0);
  EXPECT_NEAR(time.exchange, 20.0, 10 * rounding);
  EXPECT_DOUBLE_EQ(time.compute, 120.0);
}

TEST(StepTime, ShardedExchangesInEveryMicroBatch) {
  // Values: 0.5 s forward and backward, without the two units that are still there from the pass before; gradients:
  // 1 s. Only the first pass of the step finds none.
  const StepLayout layout{.strategy = StrategyKind::sharded, .ranks = 2, .shards = 2, .micro_batches = 3};
  const StepTime time = step_time(layout, links, units, 0.0);
  EXPECT_NEAR(time.exchange, 5.0 + 5 * 4.0 + 3 * 10.0, 100 * rounding);
  // The exposed part is the first unit's values and the last sum.
  EXPECT_GT(time.exposed, 0.5);
  EXPECT_LT(time.exposed, 4.0);
}

TEST(StepTime, ShardedGradientsGatherOnceAndReduceAlways) {
  const StepLayout layout{.strategy = StrategyKind::sharded_gradients, .ranks = 2, .shards = 2, .micro_batches = 2};
  EXPECT_NEAR(step_time(layout, links, units, 0.0).exchange, 5.0 + 2 * 10.0, 40 * rounding);
  const StepLayout optimizer{.strategy = StrategyKind::sharded_optimizer, .ranks = 2, .shards = 2, .micro_batches = 2};
  EXPECT_NEAR(step_time(optimizer, links, units, 0.0).exchange, 5.0 + 10.0, 40 * rounding);
}

TEST(StepTime, HybridGathersInsideANodeAndSumsAcross) {
  const StepLayout layout{.strategy = StrategyKind::hybrid, .ranks = 8, .shards = 4};
  const StepTime time = step_time(layout, links, units, 0.0);
  // Within 4 ranks: values 0.75 s x 18, gradients 1.5 s x 10; across 2 nodes: 2 x 0.5 x 2 GB at 0.25 GB/s x 10.
  EXPECT_NEAR(time.exchange, 0.75 * 18 + 15.0 + 80.0, 60 * rounding);
  // The links are busy from the first unit's backward pass on.
  EXPECT_NEAR(time.total(), 0.75 + 10.0 + 2.0 + 8 * 0.75 + 15.0 + 80.0, 60 * rounding);
}

TEST(StepTime, HybridHidesSumsAcrossNodesBehindTheBackwardPass) {
  Links fast = links;
  fast.local = 4e9;
  fast.network.bandwidth = 2e9;
  const StepLayout layout{.strategy = StrategyKind::hybrid, .ranks = 8, .shards = 4};
  // Per unit, the gather takes 0.1875 s, the reduction 0.375 s and the network 1 s, less than the 2 s of its backward
  // pass. The exposed part is the first unit's values and, after the passes, its gradients and the last two slices.
  EXPECT_NEAR(step_time(layout, fast, units, 0.0).exposed, 0.1875 + 0.375 + 2 * 1.0, 10 * rounding);
  // Slices are sent in the type in which gradients are exchanged.
  const std::vector<UnitWork> rounded(10, UnitWork{1.0, 2.0, 1e9, 1e9});
  EXPECT_NEAR(step_time(layout, fast, rounded, 0.0).exposed, 0.1875 + 0.1875 + 2 * 0.5, 10 * rounding);
}

TEST(StepTime, HybridSumsAcrossNodesOnlyOnceAStep) {
  const auto exchange = [](std::size_t micro_batches) {
    const StepLayout layout{.strategy = StrategyKind::hybrid, .ranks = 8, .shards = 4, .micro_batches = micro_batches};
    return step_time(layout, links, units, 0.0).exchange;
  };
  EXPECT_NEAR(exchange(3), 0.75 * (10 + 5 * 8) + 3 * 15.0 + 80.0, 200 * rounding);
}

TEST(StepTime, CountsWhatARankSends) {
  const auto time = [](StrategyKind strategy, std::size_t shards, std::vector<UnitWork> all = units) {
    return step_time({.strategy = strategy, .ranks = 8, .shards = shards, .micro_batches = 2}, links, all, 0.0);
  };
  const auto sent = [&](StrategyKind strategy, std::size_t shards) { return time(strategy, shards).sent; };
  const double part = 7.0 / 8.0, values = 10e9, gradients = 20e9;
  EXPECT_DOUBLE_EQ(sent(StrategyKind::replicated, 1), 2 * part * gradients);
  EXPECT_DOUBLE_EQ(sent(StrategyKind::sharded_optimizer, 8), part * (values + gradients));
  EXPECT_DOUBLE_EQ(sent(StrategyKind::sharded_gradients, 8), part * (values + 2 * gradients));
  const double gathered = (1.0 + 3 * 0.8) * values;
  EXPECT_DOUBLE_EQ(sent(StrategyKind::sharded, 8), part * (gathered + 2 * gradients));
  // Within groups of 4, and each rank's quarter of the gradients with the other group.
  const double inside = 0.75 * (gathered + 2 * gradients);
  EXPECT_DOUBLE_EQ(sent(StrategyKind::hybrid, 4), inside + 2 * 0.5 * gradients / 4);
  const std::vector<UnitWork> rounded(10, UnitWork{1.0, 2.0, 1e9, 1e9});
  EXPECT_DOUBLE_EQ(time(StrategyKind::hybrid, 4, rounded).sent, inside - 0.75 * gradients + 0.5 * gradients / 4);
}

TEST(StepTime, CountsWhatANodeSends) {
  const auto sent = [](StrategyKind strategy, std::size_t shards, bool by_node, double partial = 1.0) {
    Links between = links;
    between.by_node = by_node;
    return step_time({.strategy = strategy, .ranks = 8, .shards = shards, .partial = partial}, between, units, 0.0)
        .node_sent;
  };
  const double values = 10e9, gradients = 20e9;
  for (const auto& [by_node, part] : {std::pair(false, 7.0 / 8.0), {true, 0.5}}) {
    EXPECT_DOUBLE_EQ(sent(StrategyKind::replicated, 1, by_node), part * 2 * gradients);
    EXPECT_DOUBLE_EQ(sent(StrategyKind::sharded_optimizer, 8, by_node), part * (values + gradients));
    EXPECT_DOUBLE_EQ(sent(StrategyKind::sharded, 8, by_node), part * (1.8 * values + gradients));
    // Only the sums between the two groups leave a node, each of its ranks its own slices.
    EXPECT_DOUBLE_EQ(sent(StrategyKind::hybrid, 4, by_node), 2 * 0.5 * gradients);
  }
  // Sums of bfloat16 are sent as float between nodes, and then gathered as bfloat16.
  EXPECT_DOUBLE_EQ(sent(StrategyKind::replicated, 1, true, 2.0), 0.5 * (2 * gradients + gradients));
  EXPECT_DOUBLE_EQ(sent(StrategyKind::hybrid, 4, true, 2.0), 2 * 0.5 * gradients);
}

/// The head reads the first unit too, so three units are in memory at a time.
TEST(StepTime, GathersUnitsThatOthersReadOnce) {
  ParameterTable::Builder builder;
  for (const char* const name : {"embeddings", "a", "b", "c"}) builder.unit(name).tensor(name, {1}, {});
  builder.unit("head").tensor("head", {1}, {}).borrow("embeddings");
  const ParameterTable table = builder.build();
  const std::vector<UnitWork> work(5, UnitWork{1.0, 2.0, 1e9, 0.0});
  const auto gathered = [&](std::size_t micro_batches) {
    const StepLayout layout{.strategy = StrategyKind::sharded, .ranks = 2, .shards = 2, .micro_batches = micro_batches};
    return step_time(layout, links, table, work, 0.0).sent / 0.5e9;
  };
  // Forward: all, and the embeddings again beside the head. Backward: c is still there.
  EXPECT_DOUBLE_EQ(gathered(1), 6.0 + 3.0);
}

TEST(StepTime, WhatIsSlowerThanComputingIsWaitedFor) {
  const StepTime time = step_time({.ranks = 64}, links, units, 0.0);
  EXPECT_NEAR(time.exposed + time.compute, 12.0 + time.exchange, 1e-6);  // forward and one backward pass, then links
}

}  // namespace
}  // namespace mylos::train
