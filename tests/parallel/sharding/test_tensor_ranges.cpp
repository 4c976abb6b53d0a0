#include "parallel/sharding/sharding_strategy.hpp"
#include "tests/parallel/sharding/strategy_run.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

/// The ranges of a tensor that a rank holds, writes and sends, on one, two, three and four ranks.
namespace mylos::parallel {
namespace {

using ::testing::HasSubstr;

constexpr StrategyKind all_kinds[] = {StrategyKind::replicated, StrategyKind::sharded_optimizer,
                                      StrategyKind::sharded_gradients, StrategyKind::sharded, StrategyKind::hybrid};

/// Returns a table with tensors that the slices of a unit divide, and others that they do not. The first unit may have
/// an adapter, and then all else is frozen.
ParameterTable rows_table(bool adapted) {
  ParameterTable::Builder builder;
  builder.unit("first").tensor("words", {300, 10}, {}).tensor("scale", {7}, {}, {.decay = false});
  builder.unit("second").tensor("weight", {50, 100}, {}).tensor("out", {2048}, {});
  ParameterTable table = builder.build();
  if (adapted) table.adapt({adapter_tensor("words.lora", 0, 1500)}, [](const ParameterTensor&) { return true; });
  return table;
}

/// Exact in 16 bits, so that values need no master weights.
float value_of(std::size_t tensor, std::size_t i) { return static_cast<float>((37 * tensor + i) % 251); }

std::vector<float> values_of(std::size_t tensor, std::size_t first, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = value_of(tensor, first + i);
  return values;
}

struct Rows {
  explicit Rows(StrategyKind kind, Precision precision = Precision::float32, bool adapted = false)
      : table(rows_table(adapted)),
        mesh(tests::launch().world(), ranks_that_split(kind, 2, tests::launch().world().size())),
        store(table, precision, ParameterStore::Purpose::training, store_layout(kind, mesh.shard().size())),
        strategy(make_sharding_strategy({.kind = kind}, mesh, store)) {}

  /// Each rank writes the elements that it owns, in pieces of `piece`.
  void fill(std::size_t piece) const {
    for (std::size_t tensor = 0; tensor < table.tensors().size(); ++tensor) {
      const TensorRange owned = strategy->owned_range(tensor);
      for (std::size_t first = owned.begin; first < owned.end; first += piece) {
        strategy->write_tensor(tensor, first, values_of(tensor, first, std::min(piece, owned.end - first)));
      }
    }
  }

  ParameterTable table;
  Mesh mesh;
  ParameterStore store;
  std::unique_ptr<ShardingStrategy> strategy;
};

/// Calls check(kind) for every mode that is possible with this number of ranks.
template <class Check>
void for_each_kind(const Check& check) {
  for (const StrategyKind kind : all_kinds) {
    if (kind == StrategyKind::hybrid && tests::launch().world().size() % 2 != 0) continue;
    SCOPED_TRACE(std::string(to_string(kind)));
    check(kind);
  }
}

/// Calls check(tensors, element) for every mode, with adapters and without.
template <class Check>
void for_each_layout(const Check& check) {
  for_each_kind([&](StrategyKind kind) {
    for (const Precision precision : {Precision::float32, Precision::bfloat16, Precision::float16}) {
      for (const bool adapted : {false, true}) {
        SCOPED_TRACE(fmt::format("{}{}", to_string(precision), adapted ? ", adapted" : ""));
        check(Rows(kind, precision, adapted));
      }
    }
  });
}

TEST(TensorRanges, OfAGroupAreDisjointAndAllOfARow) {
  for_each_kind([](StrategyKind kind) {
    const Rows tensors(kind);
    for (std::size_t tensor = 0; tensor < tensors.table.tensors().size(); ++tensor) {
      const std::size_t size = tensors.table.tensor(tensor).size;
      const TensorRange owned = tensors.strategy->owned_range(tensor);
      ASSERT_LE(owned.begin, owned.end);
      ASSERT_LE(owned.end, size);
      std::vector<double> times(size);
      for (std::size_t i = owned.begin; i < owned.end; ++i) times[i] = 1.0;
      std::vector<float> sums(times.begin(), times.end());
      tensors.mesh.shard()
          .all_reduce({}, {sums.data(), sums.size(), ElementType::float32, MemoryKind::host}, "times")
          .wait({});
      EXPECT_TRUE(std::ranges::all_of(sums, [](float sum) { return sum == 1.0f; }));
    }
  });
}

TEST(TensorRanges, OwnedElementsAreAllThatARankNeeds) {
  for_each_layout([](const Rows& tensors) {
    tensors.fill(617);
    for (std::size_t tensor = 0; tensor < tensors.table.tensors().size(); ++tensor) {
      const std::size_t size = tensors.table.tensor(tensor).size;
      std::vector<float> values(size);
      tensors.strategy->read_tensor(tensor, 0, values);
      EXPECT_EQ(values, values_of(tensor, 0, size)) << tensors.table.tensor(tensor).name;
    }
  });
}

/// Of the ranks that own the same elements, one has them: the others get them in pieces.
TEST(TensorRanges, AreCopiedFromOneOfTheirOwners) {
  for_each_layout([](const Rows& tensors) {
    Communicator& copies = tensors.strategy->copies();
    const std::size_t from = copies.size() - 1, piece = 617;
    if (copies.rank() == from) tensors.fill(100000);
    for (std::size_t tensor = 0; tensor < tensors.table.tensors().size(); ++tensor) {
      const TensorRange owned = tensors.strategy->owned_range(tensor);
      for (std::size_t first = owned.begin; first < owned.end; first += piece) {
        tensors.strategy->copy_tensor(tensor, first, std::min(piece, owned.end - first), from);
      }
      std::vector<float> values(tensors.table.tensor(tensor).size);
      tensors.strategy->read_tensor(tensor, 0, values);
      EXPECT_EQ(values, values_of(tensor, 0, values.size())) << tensors.table.tensor(tensor).name;
    }
  });
}

TEST(TensorRanges, ElementsThatARankDoesNotOwnAreLeftOut) {
  for_each_kind([](StrategyKind kind) {
    const Rows tensors(kind);
    for (std::size_t tensor = 0; tensor < tensors.table.tensors().size(); ++tensor) {
      tensors.strategy->write_tensor(tensor, values_of(tensor, 0, tensors.table.tensor(tensor).size));
      std::vector<float> values(tensors.table.tensor(tensor).size / 2);
      tensors.strategy->read_tensor(tensor, 1, values);
      EXPECT_EQ(values, values_of(tensor, 1, values.size()));
    }
  });
}

TEST(TensorRanges, AnyRankGathersAndEveryElementIsSentOnceAtMost) {
  for_each_layout([](const Rows& tensors) {
    tensors.fill(100000);
    Communicator& world = tests::launch().world();
    const std::size_t group_size = tensors.mesh.shard().size();
    for (std::size_t root = 0; root < world.size(); ++root) {
      for (std::size_t tensor = 0; tensor < tensors.table.tensors().size(); ++tensor) {
        const std::size_t size = tensors.table.tensor(tensor).size;
        const std::size_t first = size / 3;
        std::vector<float> values(size - first);
        const std::uint64_t before = sent_bytes();
        tensors.strategy->gather_tensor(tensor, first, values, root);
        const TensorRange owned = tensors.strategy->owned_range(tensor);
        const bool sends = world.rank() != root && world.rank() / group_size == root / group_size && owned.end > first;
        const std::size_t expected = sends ? owned.end - std::max(first, owned.begin) : 0;
        EXPECT_EQ(sent_bytes() - before, expected * sizeof(float)) << tensors.table.tensor(tensor).name;
        if (world.rank() == root) EXPECT_EQ(values, values_of(tensor, first, values.size()));
      }
    }
    world.barrier("the next mode");
  });
}

TEST(TensorRanges, ElementsBeyondTheTensorAreRefused) {
  const Rows tensors(StrategyKind::sharded);
  std::vector<float> two(2);
  const auto expected = HasSubstr("tensor scale: values 6 to 8 of 7");
  const std::size_t tensor = tensors.table.find("scale");
  EXPECT_THAT(tests::error_of([&] { tensors.strategy->read_tensor(tensor, 6, two); }), expected);
  EXPECT_THAT(tests::error_of([&] { tensors.strategy->gather_tensor(tensor, 6, two, 0); }), expected);
  EXPECT_THAT(tests::error_of([&] { tensors.strategy->write_tensor(tensor, 6, two); }), expected);
}

}  // namespace
}  // namespace mylos::parallel
