#include "tests/parallel/sharding/five_units.hpp"
#include "tests/parallel/sharding/strategy_run.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

/// Which units NCCL exchanges in one launch, and the results of all modes over NCCL. Launches are counted by the
/// stand-in for NCCL.
namespace mylos::parallel {
namespace {

struct Launches {
  std::size_t operations = 0;  ///< a group is one
  std::size_t calls = 0;

  friend bool operator==(const Launches&, const Launches&) = default;
};

void PrintTo(const Launches& launches, std::ostream* out) {
  *out << launches.operations << " operations of " << launches.calls << " calls";
}

class NcclGroups : public ::testing::Test {
 protected:
  void SetUp() override {
    if (tests::launch().world().size() == 1) GTEST_SKIP() << "a group of one exchanges nothing";
  }

  /// Returns what `action` launches. The connections of its communicators must exist.
  template <class Action>
  Launches launches_of(Communicator& ranks, const Action& action) {
    ranks.barrier("what was begun");  // follows all launches
    const Launches before{stand_in_operations(), stand_in_calls()};
    action();
    ranks.barrier("what was begun");
    return {stand_in_operations() - before.operations, stand_in_calls() - before.calls};
  }

  std::unique_ptr<Communicator> ranks = tests::launch().make_nccl_ranks({});
  std::unique_ptr<Communicator> ranks_in_order = tests::launch().make_nccl_ranks({.in_order = true});
  ExecutionSpace space;
};

Buffer buffer_of_doubles(const Vector<double>& array) {
  return {array.data(), array.size(), ElementType::float64, MemoryKind::device};
}

TEST_F(NcclGroups, ArraysOfACallAreOneLaunch) {
  const Vector<float> floats("test::floats", 1000), nothing("test::nothing", 0);
  const Vector<double> doubles("test::doubles", 30);
  const std::vector<NamedArray> arrays = {
      {buffer_of(floats), "floats"}, {buffer_of(nothing), "nothing"}, {buffer_of_doubles(doubles), "doubles"}};
  ranks->all_reduce(space, buffer_of(floats), "connection").wait(space);
  const std::uint64_t before = sent_bytes();
  EXPECT_EQ(launches_of(*ranks, [&] { ranks->all_reduce_coalesced(space, arrays); }), (Launches{1, 2}));
  const std::size_t size = ranks->size();
  EXPECT_EQ(sent_bytes() - before, (2 * 4000 / size + 2 * 240 / size) * (size - 1));
  const auto of_first = [&](std::size_t number) {
    return launches_of(*ranks, [&] { ranks->all_reduce_coalesced(space, std::span(arrays).first(number)); });
  };
  EXPECT_EQ(of_first(0), (Launches{0, 0}));
  EXPECT_EQ(of_first(1), (Launches{1, 1}));
  EXPECT_EQ(of_first(2), (Launches{1, 1}));
}

TEST_F(NcclGroups, OrderedSumsAreLaunchedOneAfterAnother) {
  const Vector<float> floats("test::floats", 1000), others("test::others", 1000);
  const Vector<bfloat16> rounded("test::rounded", 1000);
  const std::vector<NamedArray> arrays = {{buffer_of(floats), "floats"}, {buffer_of(others), "others"}};
  for (const auto& each : {ranks.get(), ranks_in_order.get()}) {
    each->all_reduce(space, buffer_of(floats), "connection").wait(space);
  }
  const auto of_one = [&](Communicator& in, const NamedArray& array) {
    return launches_of(in, [&] { in.all_reduce(space, array.data, array.what); });
  };
  const Launches one = of_one(*ranks_in_order, arrays.front());
  EXPECT_EQ(launches_of(*ranks_in_order, [&] { ranks_in_order->all_reduce_coalesced(space, arrays); }),
            (Launches{2 * one.operations, 2 * one.calls}));
  const NamedArray short_array{buffer_of(rounded), "rounded"};
  const Launches of_rounded = of_one(*ranks, short_array);
  const std::vector<NamedArray> mixed = {arrays[0], short_array, arrays[1]};
  EXPECT_EQ(launches_of(*ranks, [&] { ranks->all_reduce_coalesced(space, mixed); }),
            (Launches{of_rounded.operations + 1, of_rounded.calls + 2}));
}

TEST_F(NcclGroups, OnlyCallsThatAreGroupedAreWorthCollectingFor) {
  EXPECT_GT(ranks->least_sum_bytes(ElementType::float32), 0u);
  EXPECT_EQ(ranks->least_sum_bytes(ElementType::bfloat16), 0u);
  EXPECT_EQ(ranks_in_order->least_sum_bytes(ElementType::float32), 0u);
  EXPECT_GT(ranks_in_order->least_gather_bytes(), 0u);
  EXPECT_EQ(tests::launch().world().least_sum_bytes(ElementType::float32), 0u);
  EXPECT_EQ(tests::launch().world().least_gather_bytes(), 0u);
  EXPECT_EQ(ranks->split(ranks->rank(), 0)->least_gather_bytes(), 0u) << "a group of one";
}

/// All four units are far smaller than what is worth a launch.
TEST_F(NcclGroups, HoldAllSmallUnitsOfAStep) {
  const auto expect = [&](Communicator& world, StrategyKind kind, Launches of_step, Launches of_update) {
    SCOPED_TRACE(to_string(kind));
    StrategyRun run({.kind = kind, .micro_batches = 2}, Precision::float32, 2, world);
    run.step(0);  // connects
    run.expect_gradients(0);
    run.update();
    run.expect_values(1.0f);
    EXPECT_EQ(launches_of(world, [&] { run.step(1); }), of_step);
    run.expect_gradients(1);
    EXPECT_EQ(launches_of(world, [&] { run.update(); }), of_update);
    run.expect_values(2.0f);
  };
  expect(*ranks, StrategyKind::replicated, {1, 4}, {0, 0});
  expect(*ranks, StrategyKind::sharded_optimizer, {1, 4}, {1, 4});
  // Gradients are summed in two micro-batches, each unit as soon as it is complete, because memory is limited.
  expect(*ranks, StrategyKind::sharded_gradients, {8, 8}, {1, 4});
}

TEST_F(NcclGroups, ChangeNoResultOfAnyMode) {
  for (const StrategyKind kind : {StrategyKind::replicated, StrategyKind::sharded_optimizer,
                                  StrategyKind::sharded_gradients, StrategyKind::sharded, StrategyKind::hybrid}) {
    if (kind == StrategyKind::hybrid && ranks->size() % 2 != 0) continue;
    for (Communicator* const world : {ranks.get(), ranks_in_order.get()}) {
      for (const auto& [precision, rounds] :
           {std::pair(Precision::float32, false), {Precision::bfloat16, false}, {Precision::float32, true}}) {
        SCOPED_TRACE(fmt::format("{} {} {} {}", to_string(kind), world == ranks.get() ? "library" : "tree",
                                 to_string(precision), rounds ? "bfloat16" : "float"));
        StrategyRun run({.kind = kind, .bfloat16_gradients = rounds, .micro_batches = 2}, precision, 2, *world);
        for (std::size_t step = 0; step < 2; ++step) {
          run.step(step);
          run.expect_gradients(step);
          run.update();
        }
        run.expect_values(2.0f);
      }
    }
  }
}

TEST_F(NcclGroups, HoldAUnitAndTheUnitsThatItReads) {
  FiveUnits model(*ranks);
  ValuePolicy& units = *model.values;
  const auto use = [&](std::size_t unit) {
    units.acquire(unit);
    model.expect_values(unit);
    units.release(unit);
  };
  units.sync(ChangedUnits::all);  // connects
  for (const std::size_t unit : {0u, 1u, 2u}) use(unit);
  // Prefetches the last unit and the first, which has left memory.
  EXPECT_EQ(launches_of(*ranks, [&] { use(3); }), (Launches{1, 2}));
  units.acquire(4);
  model.expect_values(4);
  model.expect_values(0);
  units.release(4);
  units.sync(ChangedUnits::all);
  // None is in memory, and none can be predicted.
  EXPECT_EQ(launches_of(*ranks, [&] { units.acquire(4); }), (Launches{1, 2}));
  model.expect_values(4);
  model.expect_values(0);
  units.release(4);
}

TEST_F(NcclGroups, HoldSmallSlicesThatAreSummedOverGroups) {
  StrategyRun run({.kind = StrategyKind::hybrid, .micro_batches = 2}, Precision::float32, 1, *ranks);
  run.step(0);  // connects
  for (std::size_t step = 1; step < 3; ++step) {
    EXPECT_EQ(launches_of(*ranks, [&] { run.step(step); }), (Launches{1, 4}));
    run.expect_gradients(step);
  }
}

}  // namespace
}  // namespace mylos::parallel
