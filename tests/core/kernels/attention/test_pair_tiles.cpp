#include "core/kernels/attention/pair_tiles.hpp"

#include "core/kernels/attention/attention_products.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace mylos::attention {
namespace {

#if !defined(MYLOS_DEVICE_BUILD)
constexpr int side = tile_register_side;

/// Tile registers in memory, for processors that have none.
struct EmulatedTiles {
  using Register = std::array<std::uint32_t, side * side>;
  mutable std::array<Register, 8> registers;

  template <int index>
  void clear() const {
    registers[index].fill(0);
  }
  template <int index>
  void load(const void* from, std::size_t stride) const {
    for (std::size_t row = 0; row < side; ++row) {
      std::memcpy(&registers[index][row * side], static_cast<const char*>(from) + row * stride, 4 * side);
    }
  }
  template <int index>
  void store(void* to, std::size_t stride) const {
    for (std::size_t row = 0; row < side; ++row) {
      std::memcpy(static_cast<char*>(to) + row * stride, &registers[index][row * side], 4 * side);
    }
  }
  template <int sum, int left, int right>
  void multiply() const {
    for (int i = 0; i < side; ++i) {
      for (int j = 0; j < side; ++j) {
        float total = Kokkos::bit_cast<float>(registers[sum][i * side + j]);
        for (int k = 0; k < side; ++k) {
          const Pair a = registers[left][i * side + k], b = registers[right][k * side + j];
          total += Kokkos::bit_cast<float>(a << 16) * Kokkos::bit_cast<float>(b << 16);
          total += Kokkos::bit_cast<float>(a & 0xffff0000u) * Kokkos::bit_cast<float>(b & 0xffff0000u);
        }
        registers[sum][i * side + j] = Kokkos::bit_cast<std::uint32_t>(total);
      }
    }
  }
};

/// A product of `rows` x `columns` sums over `inner` pairs, whose operands have random values, and zeros in the
/// padding.
struct Problem {
  int rows, columns, inner;
  bool along_rows;  ///< of the left operand; otherwise pairs are along its columns

  int padded_rows = round_up(rows, 2 * side), padded_columns = round_up(columns, 2 * side);
  int padded_inner = round_up(inner, side);
  std::vector<Pair> a, b;
  std::vector<float> c;

  Problem(int rows, int columns, int inner, bool along_rows)
      : rows(rows), columns(columns), inner(inner), along_rows(along_rows) {
    a.assign(padded_rows * padded_inner, 0);
    b.assign(padded_columns * padded_inner, 0);
    c.assign(padded_rows * padded_columns, -7.0f);
    for (int k = 0; k < inner; ++k) {
      for (int i = 0; i < rows; ++i) a[left_index(i, k)] = random_pair(i * inner + k);
      for (int j = 0; j < columns; ++j) b[right_index(k, j)] = random_pair(77777 + k * columns + j);
    }
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) at(i, j) = static_cast<float>((i + 2 * j) % 5);
    }
  }

  static Pair random_pair(int seed) {
    const auto value = [&](int i) { return std::sin(static_cast<float>(seed * 2 + i) * 12.9898f); };
    return pair_of(value(0), value(1));
  }
  [[nodiscard]] int left_index(int i, int k) const { return along_rows ? i * padded_inner + k : k * padded_rows + i; }
  [[nodiscard]] int right_index(int k, int j) const { return j / panel * padded_inner * panel + k * panel + j % panel; }
  float& at(int i, int j) { return c[i * padded_columns + j]; }

  [[nodiscard]] double expected(int i, int j, bool accumulate) const {
    double sum = accumulate ? (i + 2 * j) % 5 : 0;
    for (int k = 0; k < inner; ++k) {
      const Pair x = a[left_index(i, k)], y = b[right_index(k, j)];
      sum += static_cast<double>(Kokkos::bit_cast<float>(x << 16)) * Kokkos::bit_cast<float>(y << 16);
      sum += static_cast<double>(Kokkos::bit_cast<float>(x & 0xffff0000u)) * Kokkos::bit_cast<float>(y & 0xffff0000u);
    }
    return sum;
  }

  template <class Tiles>
  void multiply(const Tiles& tiles, bool accumulate) {
    const Left<Pair> left = along_rows ? Left<Pair>{a.data(), padded_inner, 1} : Left<Pair>{a.data(), 1, padded_rows};
    const Right<Pair> right{b.data(), panel, padded_inner * panel};
    for (int row = 0; row < rows; row += tile_block_rows) {
      product_in_tiles(tiles, row, rows, columns, inner, left, right, accumulate, {c.data(), padded_columns});
    }
  }
};

template <class Tiles>
void expect_products(const Tiles& tiles) {
  for (const bool accumulate : {false, true}) {
    for (const bool along_rows : {true, false}) {
      for (const auto& [rows, columns, inner] : {std::array{32, 32, 16},
                                                 {1, 1, 1},
                                                 {16, 48, 7},
                                                 {17, 16, 16},
                                                 {70, 100, 12},
                                                 {32, 64, along_rows ? 90 : 5}}) {
        Problem problem(rows, columns, inner, along_rows);
        problem.multiply(tiles, accumulate);
        for (int i = 0; i < rows; ++i) {
          for (int j = 0; j < columns; ++j) {
            ASSERT_NEAR(problem.at(i, j), problem.expected(i, j, accumulate), 1e-5 * (inner + 4))
                << "element " << i << ", " << j << " of " << rows << " x " << columns << " x " << inner
                << (along_rows ? "" : ", transposed") << (accumulate ? ", added" : "");
          }
        }
      }
    }
  }
}

TEST(PairTiles, ProductsInEmulatedTilesEqualNaiveTwin) { expect_products(EmulatedTiles{}); }

TEST(PairTiles, ProductsInTilesEqualNaiveTwin) {
  if (!has_pair_tiles()) GTEST_SKIP() << "this processor, system or build has no tile registers for bfloat16";
#if defined(MYLOS_MULTIPLIES_TILES)
  const PairTileScope scope;
  expect_products(PairTiles{});
#endif
}
#else
TEST(PairTiles, BelongToHosts) { EXPECT_FALSE(has_pair_tiles()) << "kernels of devices use no tiles of the host"; }
#endif

}  // namespace
}  // namespace mylos::attention
