#include "parallel/planning/staging.hpp"

#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/staged_array.hpp"
#include "parallel/sharding/exact_sum.hpp"
#include "tests/parallel/communicator/ranks_on_nodes.hpp"
#include "tests/parallel/sharding/strategy_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

/// Compares the replay of a mode's exchanges with the host memory that they take, where device memory is apart.
namespace mylos::parallel {
namespace {

constexpr std::size_t loaded_piece = 700;

/// Returns true in the program that treats device memory as apart from host memory.
bool makes_images() {
  StagingMemory memory;
  const Vector<float> data("test::data", 1);
  return StagedArray({}, buffer_of(data), StagedArray::Content::copied, memory).is_copy();
}

void load_in_pieces(ShardingStrategy& strategy, const ParameterTable& table) {
  for (std::size_t tensor = 0; tensor < table.tensors().size(); ++tensor) {
    const TensorRange owned = strategy.owned_range(tensor);
    for (std::size_t at = owned.begin; at < owned.end; at += loaded_piece) {
      strategy.copy_tensor(tensor, at, std::min(loaded_piece, owned.end - at), 0);
    }
  }
}

/// Acquires the units of an evaluation batch.
void use_units(StrategyRun& run) {
  for (std::size_t unit = 0; unit < run.table().network_units(); ++unit) {
    run.strategy().hooks().acquire(unit);
    run.strategy().hooks().release(unit);
  }
}

/// Exchanges the losses of a step and the squares of its gradients, as TrainingStep does.
void sum_results(StrategyRun& run, std::size_t samples) {
  const ExecutionSpace space;
  run.strategy().join_values(space, Vector<double>("test::losses", samples), "losses");
  const nn::GradientNorm norm(run.table(), run.strategy().slices());
  run.strategy().sum_of_blocks(space, norm.block_sums(space), Vector<double>("test::squares", 1));
}

/// Returns the largest image memory of a rank after a run of the steps that a plan replays.
std::size_t staging_of_run(const UnitExchanges& exchanges, const StagedRun& staged, const FrozenNames& frozen = {}) {
  const ParameterTable table = make_four_units(frozen);
  RanksOnNodes on_nodes(std::vector<std::size_t>(tests::launch().world().size(), 0));
  const auto load = [&](ShardingStrategy& strategy) {
    if (strategy.copies().size() > 1) load_in_pieces(strategy, table);
  };
  StrategyRun run(exchanges.settings, exchanges.precision, exchanges.shards, *on_nodes.ranks, load, frozen);
  for (std::size_t step = 0; step < 6; ++step) {
    if (staged.evaluates && step % 3 == 0) {
      use_units(run);
      use_units(run);
    }
    run.step(step);
    sum_results(run, staged.samples);
    run.update();
  }
  const auto bytes = static_cast<std::int64_t>(on_nodes.context.images.size());
  return static_cast<std::size_t>(maximum(*on_nodes.ranks, bytes));
}

void expect_staging(const StrategySettings& strategy, Precision precision) {
  const std::size_t ranks = tests::launch().world().size(), shards = ranks_that_split(strategy.kind, 2, ranks);
  for (const bool evaluates : {false, true}) {
    // Few losses need a block that nothing else can use; many may use one of gradients.
    const StagedRun staged{.loaded_piece = loaded_piece, .evaluates = evaluates, .samples = evaluates ? 2000u : 3u};
    for (const FrozenNames& frozen : frozen_units) {
      if (frozen.adapted && precision == Precision::float32) continue;  // adapters change the type of what is frozen
      const ParameterTable table = make_four_units(frozen);
      const UnitExchanges exchanges{strategy, shards, ranks / shards, precision, table};
      EXPECT_EQ(staging_of_run(exchanges, staged, frozen), staging_bytes(exchanges, staged))
          << evaluates << ", frozen: " << frozen.text();
    }
  }
}

TEST(Staging, AreNoneWhereTheHostReadsDeviceMemory) {
  if (makes_images()) GTEST_SKIP() << "device memory is apart";
  const ParameterTable table = make_four_units();
  EXPECT_EQ(staging_of_run({.settings = {}, .replicas = tests::launch().world().size(), .table = table}, {}), 0u);
}

TEST(Staging, TakeWhatTheReplaySays) {
  if (!makes_images()) GTEST_SKIP() << "device memory is the host's";
  for (const StrategyKind kind : {StrategyKind::replicated, StrategyKind::sharded_optimizer,
                                  StrategyKind::sharded_gradients, StrategyKind::sharded, StrategyKind::hybrid}) {
    if (kind == StrategyKind::hybrid && tests::launch().world().size() % 2 != 0) continue;
    for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
      for (const bool bfloat16_gradients : {false, true}) {
        for (const bool tree_sums : {false, true}) {
          if (tree_sums && bfloat16_gradients) continue;
          for (const std::size_t micro_batches : {1, tree_sums ? 4 : 3}) {
            SCOPED_TRACE(fmt::format("{} {}, {} micro-batches, {} exchanged, {} sums", to_string(kind),
                                     to_string(precision), micro_batches, bfloat16_gradients ? "bfloat16" : "float",
                                     tree_sums ? "tree" : "ordered"));
            expect_staging({.kind = kind,
                            .bfloat16_gradients = bfloat16_gradients,
                            .tree_sums = tree_sums,
                            .micro_batches = micro_batches},
                           precision);
          }
        }
      }
    }
  }
}

/// The last ranks have smaller parts or none, where blocks may serve less well.
TEST(Staging, AreThoseOfTheRankThatNeedsMost) {
  ParameterTable::Builder builder;
  for (const std::size_t size : {100, 1500, 40 * 1024, 65 * 1024, 70000, 9, 300000}) {
    builder.unit(fmt::format("{}", size)).tensor(fmt::format("weight.{}", size), {size}, {});
  }
  const ParameterTable table = builder.build();
  constexpr std::size_t ranks = 64;
  for (const StrategyKind kind :
       {StrategyKind::sharded_optimizer, StrategyKind::sharded_gradients, StrategyKind::sharded}) {
    const UnitExchanges exchanges{.settings = {.kind = kind, .micro_batches = 2}, .shards = ranks, .table = table};
    std::vector<std::size_t> of_ranks;
    for (std::size_t rank = 0; rank < ranks; ++rank) of_ranks.push_back(staging_bytes_of_rank(exchanges, {}, rank));
    EXPECT_EQ(staging_bytes(exchanges, {}), std::ranges::max(of_ranks)) << to_string(kind);
    EXPECT_LT(std::ranges::min(of_ranks), std::ranges::max(of_ranks)) << to_string(kind);
  }
}

/// Returns a table of `units` units of `size` elements.
ParameterTable equal_units(std::size_t units, std::size_t size) {
  ParameterTable::Builder builder;
  for (std::size_t unit = 0; unit < units; ++unit) {
    builder.unit(fmt::format("{}", unit)).tensor(fmt::format("weight.{}", unit), {size}, {});
  }
  return builder.build();
}

TEST(Staging, AreOfAllUnitsOrOfAFew) {
  constexpr std::size_t size = 8 * slice_block, units = 10, unit = size * sizeof(float), ranks = 4;
  const ParameterTable table = equal_units(units, size);
  const auto bytes = [&](StrategyKind kind, std::size_t shards) {
    return staging_bytes({.settings = {.kind = kind}, .shards = shards, .replicas = ranks / shards, .table = table},
                         {});
  };
  constexpr std::size_t loss = sizeof(double);  // of one sample; its image serves the norm
  EXPECT_EQ(bytes(StrategyKind::replicated, 1), units * unit + loss) << "gradients of all units";
  const std::size_t with_slice = unit + unit / ranks;
  EXPECT_EQ(bytes(StrategyKind::sharded_optimizer, ranks), units * with_slice + loss)
      << "the values' images serve the gradients";
  EXPECT_EQ(bytes(StrategyKind::sharded_gradients, ranks), units * with_slice + loss) << "values of all units";
  EXPECT_LE(bytes(StrategyKind::sharded, ranks), 4 * with_slice + loss);
  EXPECT_GE(bytes(StrategyKind::sharded, ranks), 2 * with_slice);
}

TEST(Staging, OfARankAloneAreNone) {
  const ParameterTable table = equal_units(3, slice_block);
  for (const StrategyKind kind : {StrategyKind::replicated, StrategyKind::sharded_optimizer,
                                  StrategyKind::sharded_gradients, StrategyKind::sharded, StrategyKind::hybrid}) {
    EXPECT_EQ(staging_bytes({.settings = {.kind = kind}, .table = table}, {.loaded_piece = 100, .samples = 8}), 0u);
  }
}

TEST(Staging, IncludeLossesAndTheSumsOfANorm) {
  const ParameterTable table = equal_units(2, slice_block);
  UnitExchanges exchanges{.settings = {.kind = StrategyKind::sharded_optimizer}, .shards = 2, .table = table};
  const std::size_t of_one_sample = staging_bytes(exchanges, {});
  // The norm needs a block of its own, because that of the losses is too large for it.
  EXPECT_EQ(staging_bytes(exchanges, {.samples = 100000}), of_one_sample + 100000 * sizeof(double));
  exchanges.settings.tree_sums = true;
  EXPECT_EQ(staging_bytes(exchanges, {}), of_one_sample + ExactSum::bytes);
}

TEST(Staging, IncludeTheLargestPieceThatIsLoaded) {
  const ParameterTable table = equal_units(2, 3 * slice_block);
  const UnitExchanges exchanges{.settings = {.kind = StrategyKind::hybrid, .bfloat16_gradients = true},
                                .shards = 4,
                                .replicas = 2,
                                .precision = Precision::bfloat16,
                                .table = table};
  // The copy has 4 bytes, and no other exchange can use it.
  EXPECT_EQ(staging_bytes(exchanges, {.loaded_piece = 1}), staging_bytes(exchanges, {}) + sizeof(float));
}

}  // namespace
}  // namespace mylos::parallel
