#include "core/trace.hpp"
#include "parallel/communicator/exchanges/rank_sum.hpp"
#include "tests/parallel/communicator/ranks_on_nodes.hpp"
#include "tests/parallel/sharding/strategy_run.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <stdexcept>
#include <string>

/// The sums between nodes in hybrid mode, and their timing. The tests assign ranks to nodes.
namespace mylos::parallel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Returns nodes of `ranks_of_node` consecutive ranks.
std::vector<std::size_t> nodes_of(std::size_t ranks_of_node) {
  std::vector<std::size_t> nodes;
  for (std::size_t rank = 0; rank < tests::launch().world().size(); ++rank) nodes.push_back(rank / ranks_of_node);
  return nodes;
}

/// Hybrid mode with one group per node.
struct HybridOnNodes {
  HybridOnNodes(std::size_t group, bool rounds, std::size_t micro_batches)
      : on_nodes(nodes_of(group)),
        run({.kind = StrategyKind::hybrid, .bfloat16_gradients = rounds, .micro_batches = micro_batches},
            Precision::float32, group, *on_nodes.ranks) {}

  /// Returns the bytes that this rank has sent to other nodes since the process started, after all operations have
  /// ended.
  std::uint64_t sent_to_nodes() {
    on_nodes.ranks->barrier("what was begun");
    return traffic().network_bytes;
  }
  /// Returns the bytes sent to sum a unit's slice over nodes in the given type.
  std::uint64_t slice_bytes(std::size_t unit, ElementType type) {
    const ParameterSlice& slice = run.strategy().slices()[unit];
    const Vector<double> memory("test::slice", slice.end - slice.begin);  // room for any type
    const std::uint64_t before = sent_to_nodes();
    run.mesh().replicate().all_reduce({}, {memory.data(), memory.size(), type, MemoryKind::device}, "test").wait({});
    return sent_to_nodes() - before;
  }

  RanksOnNodes on_nodes;
  StrategyRun run;
};

/// Calls check(group) for the group sizes that give more than one group.
template <class Check>
void for_each_group(const Check& check) {
  const std::size_t ranks = tests::launch().world().size();
  for (const std::size_t group : {1u, 2u, 4u}) {
    if (ranks % group != 0 || ranks == group) continue;
    SCOPED_TRACE(fmt::format("{} ranks in groups of {}", ranks, group));
    check(group);
  }
}

TEST(ReplicaSums, SendEachSliceOnceAStepAndBeforeTheBackwardPassEnds) {
  constexpr std::size_t micro_batches = 3;
  for_each_group([](std::size_t group) {
    std::uint64_t all_bytes[2] = {0, 0};
    for (const bool rounds : {false, true}) {
      HybridOnNodes hybrid(group, rounds, micro_batches);
      std::vector<std::uint64_t> of_slices;
      for (std::size_t unit = 0; unit < hybrid.run.table().units().size(); ++unit) {
        of_slices.push_back(hybrid.slice_bytes(unit, rounds ? ElementType::bfloat16 : ElementType::float32));
        all_bytes[rounds ? 1 : 0] += of_slices.back();
      }
      const std::uint64_t before = hybrid.sent_to_nodes();
      std::size_t reported = 0;
      std::uint64_t expected = 0;
      hybrid.run.set_on_ready([&](std::size_t unit) {
        const bool last = reported++ >= (micro_batches - 1) * of_slices.size();
        // The preceding unit in the order of the backward pass.
        if (last && unit + 1 < of_slices.size()) expected += of_slices[unit + 1];
        EXPECT_EQ(hybrid.sent_to_nodes() - before, expected)
            << "when unit " << unit << " was the " << reported << ". told";
      });
      hybrid.run.step(0);
      EXPECT_EQ(hybrid.sent_to_nodes() - before, all_bytes[rounds ? 1 : 0]);
      EXPECT_GT(all_bytes[rounds ? 1 : 0], 0u);
    }
    EXPECT_EQ(2 * all_bytes[1], all_bytes[0]) << "bfloat16 against float";
  });
}

TEST(ReplicaSums, FollowTheReduceScatterOfTheNextUnit) {
  if (tests::launch().world().size() < 4) GTEST_SKIP() << "a group of one submits no reduce-scatter";
  for_each_group([](std::size_t group) {
    if (group == 1) return;
    for (const bool rounds : {false, true}) {
      HybridOnNodes hybrid(group, rounds, 2);
      hybrid.sent_to_nodes();
      Trace::start(1000);
      hybrid.run.step(0);
      hybrid.sent_to_nodes();
      Trace::stop();
      std::vector<std::string> sums;
      for (const TraceEvent& event : Trace::events()) {
        const std::size_t name = event.name.find(" of gradients of ");
        if (event.lane != TraceLane::communication || name == std::string::npos) continue;
        sums.push_back(event.name.substr(std::string("exchange ").size()));
      }
      const std::string scatter = "reduce-scatter of gradients of ", reduce = "all-reduce of gradients of ";
      EXPECT_THAT(sums, ElementsAre(scatter + "last", scatter + "third", scatter + "second", scatter + "first",
                                    scatter + "last", scatter + "third", reduce + "last over all groups",
                                    scatter + "second", reduce + "third over all groups", scatter + "first",
                                    reduce + "second over all groups", reduce + "first over all groups"));
    }
  });
}

float uneven_gradient(std::size_t rank, std::size_t pass, std::size_t unit, std::size_t i) {
  return std::sin(static_cast<float>(7919 * rank + 104729 * pass + 31 * unit + i)) * static_cast<float>(1u << rank);
}

/// Sums as a balanced tree, neighbours first.
float tree_sum(const std::vector<float>& values) {
  std::vector<const void*> parts;
  for (const float& value : values) parts.push_back(&value);
  float sum = 0.0f;
  sum_over_ranks(ElementType::float32, parts, 1, ElementType::float32, &sum);
  return sum;
}

TEST(ReplicaSums, AddMicroBatchesOfAGroupBeforeGroups) {
  constexpr std::size_t micro_batches = 3;
  for_each_group([](std::size_t group) {
    HybridOnNodes hybrid(group, false, micro_batches);
    hybrid.run.set_gradients(uneven_gradient);
    hybrid.run.step(0);
    const auto expected = [&](std::size_t unit, std::size_t i) {
      std::vector<float> groups;
      for (std::size_t first = 0; first < tests::launch().world().size(); first += group) {
        float sum = 0.0f;
        for (std::size_t pass = 0; pass < micro_batches; ++pass) {
          std::vector<float> values;
          for (std::size_t rank = first; rank < first + group; ++rank) {
            values.push_back((unit == 0 ? 2.0f : 1.0f) * uneven_gradient(rank, pass, unit, i));
          }
          sum = pass == 0 ? tree_sum(values) : sum + tree_sum(values);
        }
        groups.push_back(sum);
      }
      return tree_sum(groups);
    };
    for (const ParameterSlice& slice : hybrid.run.strategy().slices()) {
      const Values sums = host_values(slice.gradient);
      const std::size_t end = std::min(slice.end, hybrid.run.table().units()[slice.unit].size);
      for (std::size_t i = slice.begin; i < end; ++i) {
        ASSERT_EQ(static_cast<float>(sums[i - slice.begin]), expected(slice.unit, i)) << slice.unit << " " << i;
      }
    }
  });
}

/// 129 on the first rank of every two and 128 on the other: exact in bfloat16, unlike their sum, 257.
float odd_gradient(std::size_t rank, std::size_t, std::size_t, std::size_t) { return rank % 2 == 0 ? 129.0f : 128.0f; }

TEST(ReplicaSums, RoundWhatTravelsBetweenGroupsAndNothingElse) {
  const std::size_t ranks = tests::launch().world().size();
  if (ranks % 2 != 0) GTEST_SKIP() << "the groups are of two ranks";
  for (const bool rounds : {false, true}) {
    HybridOnNodes hybrid(2, rounds, 1);
    hybrid.run.set_gradients(odd_gradient);
    hybrid.run.step(0);
    // A single group exchanges nothing with others.
    const double of_group = rounds && ranks > 2 ? 256.0 : 257.0;
    const ParameterSlice& first = hybrid.run.strategy().slices()[1];
    EXPECT_EQ(host_values(first.gradient)[0], of_group * static_cast<double>(ranks) / 2.0) << rounds;
  }
}

TEST(ReplicaSums, RefuseAStepWhoseLastMicroBatchWasNotAnnounced) {
  StrategyRun run({.kind = StrategyKind::hybrid}, Precision::float32, 1);
  ExecutionSpace space;
  run.strategy().begin_step(space);
  run.strategy().begin_micro_batch(false);
  run.pass(0);
  try {
    run.strategy().finish_gradients();
    ADD_FAILURE() << "no error";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("0 of 4 units were ready in the last micro-batch"));
  }
}

}  // namespace
}  // namespace mylos::parallel
