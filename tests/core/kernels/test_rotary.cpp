#include "core/kernels/rotary.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

RotaryFrequencies frequencies_of(std::size_t head_size) {
  RotaryFrequencies all{.pairs = head_size / 2};
  for (std::size_t i = 0; i < all.pairs; ++i) {
    all.radians[i] = static_cast<float>(std::pow(100.0, -static_cast<double>(i) / static_cast<double>(all.pairs)));
  }
  return all;
}

std::vector<std::int32_t> some_positions(std::size_t rows) {
  std::vector<std::int32_t> positions;
  for (std::size_t row = 0; row < rows; ++row) positions.push_back(static_cast<std::int32_t>(row * 11 % 37));
  return positions;
}

/// Computes the rotation naively in double; a pair is elements (i, i + D/2) of a head.
Values rotated(const Values& x, std::size_t columns, std::size_t heads, std::size_t size, double direction) {
  const RotaryFrequencies frequencies = frequencies_of(size);
  const auto positions = some_positions(x.size() / columns);
  Values y = x;
  for (std::size_t row = 0; row < positions.size(); ++row) {
    for (std::size_t head = 0; head < heads; ++head) {
      for (std::size_t i = 0; i < size / 2; ++i) {
        const double angle = direction * positions[row] * static_cast<double>(frequencies.radians[i]);
        const std::size_t at = row * columns + head * size + i, other = at + size / 2;
        y[at] = x[at] * std::cos(angle) - x[other] * std::sin(angle);
        y[other] = x[other] * std::cos(angle) + x[at] * std::sin(angle);
      }
    }
  }
  return y;
}

template <class T>
void turn(const ExecutionSpace& space, std::size_t heads, std::size_t size, Rotation rotation, const Matrix<T>& x) {
  const Matrix<float> table("test::table", x.extent(0), size);
  rotary_table(space, device_integers(some_positions(x.extent(0))), frequencies_of(size), table);
  rotate<T>(space, table, heads, rotation, x);
}

struct RotaryCase {
  std::size_t rows, heads, size, columns;  ///< columns beyond heads * size are unchanged
};
constexpr RotaryCase rotary_cases[] = {
    {1, 1, 2, 2}, {5, 3, 6, 25}, {67, 4, 64, 320}, {300, 6, 128, 1024}, {3, 1, 256, 300}};

MYLOS_TEST_OF_ELEMENTS(Rotary, TurnsPairsOfHalvesAndLeavesTheRest) {
  for (const auto& [rows, heads, size, columns] : rotary_cases) {
    const std::string name = fmt::format("{} rows, {} heads of {} in {} columns", rows, heads, size, columns);
    const Values x = random_values<T>(rows * columns, 1, 2.0);
    for (const Rotation rotation : {Rotation::forward, Rotation::backward}) {
      const auto y = device_matrix<T>(x, rows, columns), one = device_matrix<T>(x, rows, columns);
      turn<T>({}, heads, size, rotation, y);
      const double direction = rotation == Rotation::forward ? 1.0 : -1.0;
      expect_near(host_values(y), rotated(x, columns, heads, size, direction), 2.0 * rounding<T> + 4e-6, name);
      turn<T>(one_thread(), heads, size, rotation, one);
      EXPECT_TRUE(same_bits(y, one)) << name;
    }
  }
}

/// Heads that are multiples of 16 bytes, in arrays that do not begin at one.
MYLOS_TEST_OF_ELEMENTS(Rotary, MisalignedArraysGiveTheSameBits) {
  constexpr std::size_t rows = 7, heads = 3, size = 64, columns = 256;
  const auto aligned = device_matrix<T>(random_values<T>(rows * columns, 1), rows, columns);
  const Vector<T> memory("test::misaligned", rows * columns + 1);
  const Matrix<T> misaligned(memory.data() + 1, rows, columns);
  Kokkos::deep_copy(misaligned, aligned);
  for (const Matrix<T>& x : {aligned, misaligned}) turn<T>({}, heads, size, Rotation::forward, x);
  EXPECT_TRUE(same_bits(aligned, misaligned));
}

/// Rotating dy back gives the gradient of sum(dy * rotated(x)) for every element of x.
TEST(RotaryJacobian, BackwardIsTheTranspose) {
  constexpr std::size_t rows = 4, heads = 2, size = 6, columns = 15;
  Values x = random_values(rows * columns, 1);
  const Values dy = random_values(rows * columns, 2);
  const auto gradient = device_matrix<float>(dy, rows, columns);
  turn<float>({}, heads, size, Rotation::backward, gradient);
  const auto loss = [&] {
    const Values y = rotated(x, columns, heads, size, 1.0);
    double sum = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
    return sum;
  };
  expect_near(host_values(gradient), numeric_gradient(x, loss), 2e-6, "dx");
}

TEST(RotaryTable, IsExactAtPositionsOfLongContexts) {
  const RotaryFrequencies frequencies = frequencies_of(8);
  const std::vector<std::int32_t> positions{0, 1, 4095, 131071};
  const Matrix<float> table("test::table", positions.size(), 8);
  rotary_table({}, device_integers(positions), frequencies, table);
  Values expected;
  for (const std::int32_t position : positions) {
    for (const bool sine : {false, true}) {
      for (std::size_t i = 0; i < 4; ++i) {
        const double angle = static_cast<double>(static_cast<float>(position) * frequencies.radians[i]);
        expected.push_back(sine ? std::sin(angle) : std::cos(angle));
      }
    }
  }
  expect_near(host_values(table), expected, 2e-7, "table");
}

TEST(RotaryErrors, ShowBothSides) {
  const Matrix<float> table("test::table", 3, 4), x("test::x", 3, 7), long_x("test::x", 4, 8);
  EXPECT_THAT(error_of([&] { rotate<float>({}, table, 2, Rotation::forward, x); }),
              HasSubstr("rotary embeddings: a table of 3 x 4 and 2 heads for 3 x 7"));
  EXPECT_THAT(error_of([&] { rotate<float>({}, table, 2, Rotation::forward, long_x); }),
              HasSubstr("a table of 3 x 4 and 2 heads for 4 x 8"));
  EXPECT_THAT(error_of([&] { rotary_table({}, device_integers(some_positions(2)), frequencies_of(4), table); }),
              HasSubstr("rotary embeddings: 2 positions and 2 pairs (at most 128) for a table of 3 x 4"));
}

}  // namespace
}  // namespace mylos
