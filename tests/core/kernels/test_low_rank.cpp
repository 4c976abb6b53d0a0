#include "core/kernels/low_rank.hpp"

#include "tests/core/kernels/dropout_twin.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Adapters of stacked layers: the blocks of U (rows, columns).
struct LowRankStack {
  std::string name;
  std::size_t rows, columns;
  std::vector<LowRankBlock> blocks;

  LowRankBlocks argument() const {
    LowRankBlocks all;
    for (const LowRankBlock& block : blocks) all.block[all.count++] = block;
    return all;
  }
  /// Calls use(block, row and column in the block, row and column in U) for each element of the blocks.
  template <class Use>
  void for_each_element(const Use& use) const {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const LowRankBlock& block = blocks[i];
      for (std::size_t row = 0; row < block.rows; ++row) {
        for (std::size_t k = 0; k < block.rank; ++k) {
          use(i, row * block.rank + k, (block.first_row + row) * columns + block.first_column + k);
        }
      }
    }
  }
};

const std::vector<LowRankStack> low_rank_stacks = {
    {"one of rank 1", 5, 1, {{0, 5, 0, 1, 2.0f}}},
    {"one wide", 300, 17, {{0, 300, 0, 17, 8.0f / 3.0f}}},
    {"the first and the last of three", 16, 8, {{0, 8, 0, 3, 0.5f}, {12, 4, 3, 5, -3.0f}}},
    {"the second of three", 16, 3, {{8, 4, 0, 3, 1.0f}}},
    {"four", 29, 13, {{0, 1, 0, 1, 1.0f}, {1, 9, 1, 2, 2.0f}, {10, 8, 3, 3, 3.0f}, {18, 11, 6, 7, 0.25f}}}};

MYLOS_TEST_OF_ELEMENTS(LowRank, PlacesScaledBlocksAmongZeros) {
  for (const LowRankStack& stack : low_rank_stacks) {
    BlockValues<T> values;
    std::vector<Values> b;
    for (std::size_t i = 0; i < stack.blocks.size(); ++i) {
      b.push_back(random_values<T>(stack.blocks[i].rows * stack.blocks[i].rank, 1 + i));
      values[i] = device_vector<T>(b.back());
    }
    Values expected(stack.rows * stack.columns, 0.0);
    stack.for_each_element([&](std::size_t i, std::size_t element, std::size_t place) {
      expected[place] = static_cast<float>(T(stack.blocks[i].scale * static_cast<float>(b[i][element])));
    });
    const auto u = device_matrix<T>(Values(expected.size(), no_number), stack.rows, stack.columns);
    place_low_rank<T>({}, stack.argument(), values, u);
    EXPECT_EQ(host_values(u), expected) << stack.name;
  }
}

TEST(LowRank, AddsScaledGradientsOfTheBlocksAlone) {
  for (const LowRankStack& stack : low_rank_stacks) {
    Values du(stack.rows * stack.columns, no_number);
    stack.for_each_element([&](std::size_t i, std::size_t element, std::size_t place) {
      du[place] = static_cast<double>(10 * i) + random_values(element + 1, 3 + i).back();
    });
    std::vector<Values> expected;
    BlockGradients gradients;
    for (std::size_t i = 0; i < stack.blocks.size(); ++i) {
      expected.push_back(random_values(stack.blocks[i].rows * stack.blocks[i].rank, 7 + i));
      gradients[i] = device_vector<float>(expected.back());
    }
    for (int pass = 0; pass < 2; ++pass) {
      add_low_rank_gradients({}, stack.argument(), device_matrix<float>(du, stack.rows, stack.columns), gradients);
      stack.for_each_element([&](std::size_t i, std::size_t element, std::size_t place) {
        expected[i][element] += static_cast<double>(stack.blocks[i].scale) * du[place];
      });
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expect_near(host_values(gradients[i]), expected[i], 4.0 * rounding<float>, fmt::format("{} {}", stack.name, i));
    }
  }
}

TEST(LowRankErrors, NameTheBlockAndTheSize) {
  const Matrix<float> u("test::u", 5, 3);
  const LowRankBlocks rows{{{{0, 2, 0, 1}, {2, 4, 1, 1}}}, 2}, columns{{{{0, 5, 1, 3}}}, 1};
  EXPECT_THAT(error_of([&] { place_low_rank<float>({}, rows, {}, u); }), HasSubstr("low-rank block 1: beyond 5 x 3"));
  EXPECT_THAT(error_of([&] { add_low_rank_gradients({}, columns, u, {}); }),
              HasSubstr("low-rank block 0: beyond 5 x 3"));
}

constexpr DropoutKey dropout_key(float probability) {
  return {.seed = 5, .step = 6, .site = 0x8007, .probability = probability};
}

/// Widths below a draw's eight columns, beside it, and above the 256 that a thread of a host draws at once.
MYLOS_TEST_OF_ELEMENTS(Dropout, MatchesTheTwinAndAdds) {
  for (const std::size_t rows : {1u, 40u}) {
    for (const std::size_t columns : {1u, 7u, 8u, 36u, 300u}) {
      for (const float probability : {0.0f, 0.1f, 0.75f}) {
        const Packing packing(rows);
        const DropoutKey key = dropout_key(probability);
        const Values factors = packing.factors(key, columns), x = random_values<T>(rows * columns, 1);
        Values y = random_values<T>(rows * columns, 2), dropped(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) dropped[i] = factors[i] * x[i];
        const std::string name = fmt::format("{} x {}, {}", rows, columns, probability);
        const auto in = device_matrix<T>(x, rows, columns), sum = device_matrix<T>(y, rows, columns);
        const auto out = device_matrix<T>(Values(x.size(), no_number), rows, columns);
        dropout<T>({}, key, packing.device(), in, out);
        dropout<T>({}, key, packing.device(), in, sum, true);
        for (std::size_t i = 0; i < y.size(); ++i) y[i] += dropped[i];
        expect_near(host_values(out), dropped, 2.0 * rounding<T>, name);
        expect_near(host_values(sum), y, 2.0 * rounding<T>, name + ", added");
      }
    }
  }
}

MYLOS_TEST_OF_ELEMENTS(Dropout, KeepsTheMeanByOneScale) {
  constexpr std::size_t rows = 512, columns = 200;
  const auto x = device_matrix<T>(Values(rows * columns, 1.0), rows, columns);
  const Matrix<T> y("test::y", rows, columns), sum("test::sum", rows, columns);
  for (const float probability : {0.05f, 0.5f}) {
    const DropoutKey key = dropout_key(probability);
    dropout<T>({}, key, Packing(rows).device(), x, y);
    const Values values = host_values(y);
    const double kept = static_cast<float>(T(key.scale()));
    EXPECT_TRUE(std::ranges::all_of(values, [&](double value) { return value == 0.0 || value == kept; }));
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    EXPECT_NEAR(mean, kept * (1.0 - static_cast<double>(probability)), 0.01);
    Kokkos::deep_copy(sum, T(0.0f));
    dropout<T>({}, key, Packing(rows).device(), x, sum, true);
    EXPECT_TRUE(same_bits(sum, y)) << "a gradient passes where its input did";
  }
}

/// Rows of two samples in one batch, then in the other order, and alone.
TEST(Dropout, DependsOnTheSampleAndThePositionAlone) {
  constexpr std::size_t columns = 300;
  const auto masks_of = [&](const std::vector<std::uint32_t>& ids, const std::vector<std::size_t>& lengths) {
    Batch batch;
    batch.reset(lengths, ids);
    const std::size_t rows = std::accumulate(lengths.begin(), lengths.end(), std::size_t{0});
    const auto x = device_matrix<float>(Values(rows * columns, 1.0), rows, columns);
    const Matrix<float> y("test::y", rows, columns);
    dropout<float>({}, dropout_key(0.3f), dropout_rows(batch), x, y);
    return host_values(y);
  };
  const auto joined = [](Values first, const Values& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  const Values eleven = masks_of({11}, {5}), four = masks_of({4}, {19});
  EXPECT_EQ(masks_of({11, 4}, {5, 19}), joined(eleven, four));
  EXPECT_EQ(masks_of({4, 11}, {19, 5}), joined(four, eleven));
  EXPECT_NE(Values(four.begin(), four.begin() + 5 * columns), eleven);
}

TEST(Dropout, SizesOfBothSidesAreEqual) {
  const Matrix<float> x("test::x", 3, 8), y("test::y", 3, 5);
  EXPECT_THAT(error_of([&] { dropout<float>({}, dropout_key(0.1f), {}, x, y); }),
              HasSubstr("dropout of 3 x 8 into 3 x 5"));
}

}  // namespace
}  // namespace mylos
