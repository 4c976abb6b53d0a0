#include "parallel/planning/staging.hpp"
#include "tests/parallel/sharding/strategy_run.hpp"
#include "tests/support/tool_callbacks.hpp"
#include "tests/support/update_control.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

/// Compares every mode with known sums, on one, two, three and four ranks.
namespace mylos::parallel {
namespace {

constexpr StrategyKind kinds[] = {StrategyKind::replicated, StrategyKind::sharded_optimizer,
                                  StrategyKind::sharded_gradients, StrategyKind::sharded, StrategyKind::hybrid};

/// Calls check(settings, precision) for every mode that is possible with this number of ranks.
template <class Check>
void for_each_setting(const Check& check) {
  for (const StrategyKind kind : kinds) {
    if (kind == StrategyKind::hybrid && tests::launch().world().size() % 2 != 0) continue;
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
      for (const bool bfloat16_gradients : {false, true}) {
        for (const std::size_t micro_batches : {1, 2, 3, 4}) {
          for (const bool tree : {false, true}) {
            if (tree && (micro_batches == 3 || bfloat16_gradients)) continue;
            SCOPED_TRACE(fmt::format("{} {} {} micro-batches, {} exchanged{}", to_string(kind), to_string(precision),
                                     micro_batches, bfloat16_gradients ? "bfloat16" : "float", tree ? ", tree" : ""));
            check(StrategySettings{kind, bfloat16_gradients, tree, micro_batches}, precision);
          }
        }
      }
    }
  }
}

TEST(ShardingStrategies, GradientsAreSumsOverRanksAndMicroBatches) {
  for_each_setting([](const StrategySettings& settings, Precision precision) {
    StrategyRun run(settings, precision);
    for (std::size_t step = 0; step < 2; ++step) {
      run.step(step);
      run.expect_gradients(step);
      run.update();
    }
    run.expect_values(2.0f);
  });
}

TEST(ShardingStrategies, ValuesAreThoseOfTheMastersEverywhere) {
  for_each_setting([](const StrategySettings& settings, Precision precision) {
    if (settings.micro_batches > 1) return;
    StrategyRun run(settings, precision);
    run.expect_values(0.0f);
    run.update();
    run.expect_values(1.0f);
    run.update();
    run.step(0);  // acquires every unit, and reads none
    run.update();
    run.expect_values(3.0f);
  });
}

/// An update rounds the values that it writes, so that publishing them only has to exchange them. Master weights that
/// were written otherwise are rounded when they are published.
TEST(ShardingStrategies, UpdatesRoundTheirValues) {
  for_each_setting([](const StrategySettings& settings, Precision precision) {
    if (settings.micro_batches > 1) return;
    StrategyRun run(settings, precision);
    const auto optimizer = nn::make_optimizer({}, run.table(), run.strategy().slices());
    const bool keeps_copies = precision != Precision::float32 && !shards_values(settings.kind);
    for (const ParameterSlice& part : run.strategy().slices()) EXPECT_EQ(part.rounded != nullptr, keeps_copies);
    for (std::size_t step = 0; step < 2; ++step) {
      run.step(step);
      {
        const tests::KokkosRecorder recorder;
        const nn::UpdateSettings settings_of_step{.step = step, .learning_rate = 0.37f};
        optimizer->update(ExecutionSpace(), settings_of_step, tests::update_control());
        run.strategy().sync_parameters(ExecutionSpace(), ChangedUnits::trained);
        EXPECT_FALSE(keeps_copies && recorder.launched("mylos::activation::convert"));
      }
      run.expect_values_of_master_weights();
    }
    run.update();
    run.expect_values_of_master_weights();
  });
}

/// Calls check(settings, precision, frozen) with what is frozen.
template <class Check>
void for_each_frozen(const Check& check) {
  for (const FrozenNames& frozen : frozen_units) {
    SCOPED_TRACE("frozen: " + frozen.text());
    for_each_setting(
        [&](const StrategySettings& settings, Precision precision) { check(settings, precision, frozen); });
  }
}

TEST(ShardingStrategies, RanksSaveDisjointRangesThatCoverEveryUnit) {
  for_each_frozen([](const StrategySettings& settings, Precision precision, const FrozenNames& frozen) {
    if (settings.micro_batches > 1) return;
    StrategyRun run(settings, precision, 2, tests::launch().world(), {}, frozen);
    for (std::size_t unit = 0; unit < run.table().units().size(); ++unit) {
      std::vector<int> times(run.table().units()[unit].size);
      for (std::size_t rank = 0; rank < tests::launch().world().size(); ++rank) {
        const UnitRange range = run.strategy().saved_range(unit, rank);
        ASSERT_LE(range.begin, range.end);
        ASSERT_LE(range.end, times.size());
        for (std::size_t i = range.begin; i < range.end; ++i) ++times[i];
      }
      for (const int count : times) ASSERT_EQ(count, 1);
      const ParameterSlice& mine = run.strategy().slices()[unit];
      const UnitRange range = run.strategy().saved_range(unit, tests::launch().world().rank());
      if (range.begin < range.end) {
        EXPECT_GE(range.begin, mine.begin);
        EXPECT_LE(range.end, mine.end);
      }
    }
  });
}

TEST(ShardingStrategies, FrozenUnitsStayAndHaveNoGradients) {
  for_each_frozen([](const StrategySettings& settings, Precision precision, const FrozenNames& frozen) {
    if (settings.micro_batches != 2) return;
    StrategyRun run(settings, precision, 2, tests::launch().world(), {}, frozen);
    for (std::size_t step = 0; step < 2; ++step) {
      run.step(step);
      run.expect_gradients(step);
      run.update();
    }
    run.expect_values(2.0f);
    // Values that are written later, as by a resumption, are exchanged.
    const std::vector<float> values(run.table().tensor(0).size, 7.0f);
    run.strategy().write_tensor(0, values);
    run.strategy().sync_parameters(ExecutionSpace(), ChangedUnits::all);
    run.expect_values_of_master_weights();
  });
}

/// Values of a model that is adapted have the compute type only. They are widened when they are read.
TEST(ShardingStrategies, FrozenUnitsBesideAdaptersHaveNoMasterWeights) {
  for_each_frozen([](const StrategySettings& settings, Precision precision, const FrozenNames& frozen) {
    if (settings.micro_batches > 1) return;
    const auto load = [](ShardingStrategy& strategy) {
      strategy.write_tensor(0, std::vector<float>(3000, 1.0f + 0x1p-12f));
    };
    StrategyRun run(settings, precision, 2, tests::launch().world(), load, frozen);
    const bool has_narrow = frozen.adapted && precision != Precision::float32;
    for (const ParameterSlice& part : run.strategy().slices()) {
      const bool is_narrow = has_narrow && !run.table().units()[part.unit].trained;
      EXPECT_EQ(part.master.size(), is_narrow ? 0u : part.end - part.begin) << run.table().units()[part.unit].name;
      if (!is_narrow) continue;
      ASSERT_NE(part.rounded, nullptr);
      EXPECT_EQ(part.rounded->values.size(), (part.end - part.begin) * bytes_of(precision));
    }
    run.expect_values_of_master_weights();
    std::vector<float> words(3000);
    run.strategy().read_tensor(0, 0, words);
    const bool is_rounded = has_narrow && !run.table().tensor(0).group.trainable;
    EXPECT_EQ(words, std::vector<float>(3000, is_rounded ? 1.0f : 1.0f + 0x1p-12f));
  });
}

TEST(ShardingStrategies, OptimizersHaveNoStateOfFrozenTensors) {
  StrategyRun run({}, Precision::float32, 2, tests::launch().world(), {}, {{"second", "words"}});
  const auto optimizer = nn::make_optimizer({}, run.table(), run.strategy().slices());
  std::vector<std::size_t> slots;
  for (std::size_t i = 0; i < run.strategy().slices().size(); ++i) slots.push_back(optimizer->slot(0, i).size());
  EXPECT_EQ(slots, (std::vector<std::size_t>{700, 0, 10, 2048, 0}));
}

TEST(ShardingStrategies, MemoryIsWhatTheFormulaSays) {
  for_each_frozen([](const StrategySettings& settings, Precision precision, const FrozenNames& frozen) {
    const ParameterTable table = make_four_units(frozen);
    const std::size_t ranks = tests::launch().world().size();
    Mesh mesh(tests::launch().world(), ranks_that_split(settings.kind, 2, ranks));
    const tests::KokkosRecorder recorder;
    ParameterStore store(table, precision, ParameterStore::Purpose::training,
                         store_layout(settings.kind, mesh.shard().size()));
    const auto strategy = make_sharding_strategy(settings, mesh, store);
    std::size_t taken = 0;
    for (const auto& allocation : recorder.allocations()) taken += allocation.bytes;
    const StrategyMemory memory =
        strategy_memory({settings, mesh.shard().size(), mesh.replicate().size(), precision, table});
    // A View's metadata takes 128 bytes.
    EXPECT_NEAR(static_cast<double>(taken), static_cast<double>(memory.values + memory.gradients + memory.exchange),
                256.0 * static_cast<double>(recorder.allocations().size()));
    std::size_t slices = 0;
    for (const ParameterSlice& part : strategy->slices()) {
      if (table.units()[part.unit].trained) slices += part.end - part.begin;
    }
    EXPECT_EQ(slices, memory.slices);
  });
}

TEST(ShardingStrategies, StepsAllocateNothing) {
  if (!runs_on_host) GTEST_SKIP() << "the test copies gradients to the device";
  for_each_setting([](const StrategySettings& settings, Precision precision) {
    StrategyRun run(settings, precision);
    run.step(0);
    const tests::KokkosRecorder recorder;
    run.step(1);
    EXPECT_EQ(recorder.allocations().size(), 0u);
  });
}

TEST(ShardingStrategies, ShardedHoldsItsPartOfAllAndTwoUnits) {
  ParameterTable::Builder builder;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) builder.unit(name).tensor(name, {8 * slice_block}, {});
  const ParameterTable table = builder.build();
  const std::size_t unit = 8 * slice_block * sizeof(float), all = 6 * unit;
  UnitExchanges exchanges{.settings = {.kind = StrategyKind::sharded}, .shards = 4, .table = table};
  const StrategyMemory memory = strategy_memory(exchanges);
  EXPECT_EQ(memory.values, all / 4 + 2 * unit);
  EXPECT_EQ(memory.gradients, all / 4 + 2 * unit);
  EXPECT_EQ(memory.slices * sizeof(float), all / 4);
  // 16-bit values are rounded when they are gathered.
  exchanges.precision = Precision::bfloat16;
  EXPECT_EQ(strategy_memory(exchanges).values, all / 4 + unit);
}

TEST(ShardingStrategies, NamesAreReadBack) {
  for (const StrategyKind kind : kinds) EXPECT_EQ(parse_strategy(to_string(kind)), kind);
  EXPECT_FALSE(parse_strategy("zero").has_value());
}

}  // namespace
}  // namespace mylos::parallel
