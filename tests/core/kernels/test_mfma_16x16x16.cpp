#include "tests/core/kernels/emulated_block.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

/// AMD's Matrix Instruction Calculator says which register of which thread holds an element. It says the same of
/// V_MFMA_F32_16X16X16F16 and V_MFMA_F32_16X16X16BF16_1K of CDNA2, and of V_MFMA_F32_16X16X16_F16 and _BF16 of CDNA3.
/// The functions below have its formulas, and the first test has entries of its tables.
namespace mylos::matrix {
namespace {

using M = Mfma16x16x16;

struct Place {
  int thread, word, half;
};

constexpr Place left_place(int i, int k) { return {16 * (k / 4) + i, k / 2 % 2, k % 2}; }
constexpr Place right_place(int k, int j) { return {16 * (k / 4) + j, k / 2 % 2, k % 2}; }
constexpr Place sum_place(int i, int j) { return {16 * (i / 4) + j, i % 4, 0}; }

std::string word(const Place& place) {
  return "v" + std::to_string(place.word) + "{" + std::to_string(place.thread) + "}";
}
std::string half_word(const Place& place) { return word(place) + (place.half == 0 ? ".[15:0]" : ".[31:16]"); }

TEST(Mfma16x16x16, PlacesAreThoseOfAmdsCalculator) {
  EXPECT_EQ(half_word(left_place(0, 3)), "v1{0}.[31:16]");
  EXPECT_EQ(half_word(left_place(15, 4)), "v0{31}.[15:0]");
  EXPECT_EQ(half_word(left_place(15, 9)), "v0{47}.[31:16]");
  EXPECT_EQ(half_word(right_place(0, 9)), "v0{9}.[15:0]");
  EXPECT_EQ(half_word(right_place(15, 4)), "v1{52}.[31:16]");
  EXPECT_EQ(word(sum_place(0, 15)), "v0{15}");
  EXPECT_EQ(word(sum_place(15, 6)), "v3{54}");
}

/// Rows and columns are exchanged here, so that a thread's row in a tile is a column of the instruction.
TEST(Mfma16x16x16, ThreadsHaveThoseRowsAndColumns) {
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 16; ++column) {
      const Place sum = sum_place(column, row), left = right_place(column, row), right = left_place(row, column);
      EXPECT_EQ(M::lane(row, column / 4), sum.thread);
      for (const Place& place : {sum, left, right}) {
        EXPECT_EQ(M::row(M::group(place.thread)), row);
        EXPECT_EQ(M::in_group(place.thread), column / 4);
      }
      // The sums of four adjacent columns, rounded, are the left operand of the next product.
      EXPECT_EQ(sum.thread, left.thread);
      EXPECT_EQ(sum.word, 2 * left.word + left.half);
    }
  }
}

/// A matrix of whole numbers that have no symmetry and are exact in bfloat16.
struct Numbers {
  int by_row, by_column;
  float operator()(int row, int column) const { return static_cast<float>((by_row * row + by_column * column) % 23); }
};

void set(std::uint32_t (&words)[2], const Place& place, float value) {
  words[place.word] |= static_cast<std::uint32_t>(bfloat16(value).bits) << (16 * place.half);
}

TEST(Mfma16x16x16, IsEmulatedWithThosePlaces) {
  constexpr Numbers left{5, 11}, right{7, 3}, before{2, 13};
  std::array<std::array<float, 4>, M::lanes> sums{};
  emulate(1, M::lanes, tile_alignment, ThreadOrder::ascending, [&](const EmulatedBlock& threads) {
    const EmulatedMfmaBlock block(threads);
    std::uint32_t a[2] = {}, b[2] = {};
    float c[4] = {};
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 16; ++j) {
        if (left_place(i, j).thread == block.lane()) set(a, left_place(i, j), left(i, j));
        if (right_place(i, j).thread == block.lane()) set(b, right_place(i, j), right(i, j));
        if (sum_place(i, j).thread == block.lane()) c[sum_place(i, j).word] = before(i, j);
      }
    }
    block.multiply_add<bfloat16>(c, a[0], a[1], b[0], b[1]);
    for (int e = 0; e < 4; ++e) sums[block.lane()][e] = c[e];
  });
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) {
      float expected = before(i, j);
      for (int k = 0; k < 16; ++k) expected += left(i, k) * right(k, j);
      const Place place = sum_place(i, j);
      EXPECT_EQ(sums[place.thread][place.word], expected) << i << ", " << j;
    }
  }
}

}  // namespace
}  // namespace mylos::matrix
