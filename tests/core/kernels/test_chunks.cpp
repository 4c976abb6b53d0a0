#include "core/kernels/chunks.hpp"

#include "core/kernels/column_sums.hpp"
#include "core/kernels/held_rows.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

constexpr std::size_t guard = 16;  // elements before and after the range that a loop may write

/// Computes b = 2 b + a and c = a on arrays of two types that start `shift` elements after a multiple of 16 bytes.
template <class Narrow>
struct Arrays {
  Vector<float> a, b;
  Vector<Narrow> c;
  std::size_t n, first;

  Arrays(std::size_t size, std::size_t shift)
      : a(device_vector<float>(random_values(size + shift + 2 * guard, 1))),
        b(device_vector<float>(random_values(size + shift + 2 * guard, 2))),
        c(device_vector<Narrow>(random_values<Narrow>(size + shift + 2 * guard, 3))),
        n(size),
        first(guard + shift) {}

  void map() const {
    const float* const from = a.data() + first;
    for_each_element(
        "mylos::test::map", ExecutionSpace(), n,
        KOKKOS_LAMBDA(const float& x, float& y, Narrow& z) {
          y = 2.0f * y + x;
          z = Narrow(x);
        },
        from, b.data() + first, written(c.data() + first));
  }
};

MYLOS_TEST_OF_ELEMENTS(ForEachElement, TakesEachOnceAndNoOthers) {
  for (const std::size_t n : {0u, 1u, 7u, 8u, 9u, 64u, 4096u, 4100u, 9999u}) {
    for (const std::size_t shift : {0u, 1u, 2u, 4u}) {
      const Arrays<T> arrays(n, shift);
      Values b = host_values(arrays.b), c = host_values(arrays.c);
      const Values a = host_values(arrays.a);
      for (std::size_t i = arrays.first; i < arrays.first + n; ++i) {
        b[i] = 2.0 * b[i] + a[i];
        c[i] = static_cast<double>(float(T(static_cast<float>(a[i]))));
      }
      arrays.map();
      expect_near(host_values(arrays.b), b, 1e-7, fmt::format("{} elements, shifted by {}", n, shift));
      expect_near(host_values(arrays.c), c, 0.0, fmt::format("{} elements, shifted by {}", n, shift));
    }
  }
}

MYLOS_TEST_OF_ELEMENTS(ForEachElement, FindsTheFirstElementAtWhichAllAreAligned) {
  const Vector<float> a("test::a", 40);
  const Vector<T> b("test::b", 40);
  constexpr std::size_t width = access_bytes / sizeof(T);
  for (std::size_t shift = 0; shift < 16; ++shift) {
    const std::size_t first = (width - shift % width) % width;
    const float* const from = a.data() + shift;
    EXPECT_EQ(elements_before_access(20, from, written(b.data() + shift)), first) << shift;
    EXPECT_EQ(elements_before_access(first, from, written(b.data() + shift)), first) << shift;
    EXPECT_EQ(elements_before_access(20, from, written(b.data() + shift + 1)), 20u) << shift;
  }
}

MYLOS_TEST_OF_ELEMENTS(ForEachElement, ChunksHoldWhatWasSet) {
  T values[8], copy[8];
  for (int j = 0; j < 8; ++j) values[j] = T(1.5f * static_cast<float>(j) - 4.0f);
  Chunk<T, 8> chunk;
  chunk.load(values);
  Chunk<T, 8> reversed = {};
  for (unsigned j = 0; j < 8; ++j) reversed.set(7 - j, chunk[j]);
  reversed.set(3, T(9.0f));
  reversed.store(copy);
  for (unsigned j = 0; j < 8; ++j) EXPECT_EQ(float(copy[7 - j]), j == 4 ? 9.0f : float(values[j])) << j;
  float floats[8];
  for (int j = 0; j < 8; ++j) floats[j] = static_cast<float>(j) / 7.0f - 0.5f;
  chunk.round(floats);
  for (unsigned j = 0; j < 8; ++j) EXPECT_EQ(float(chunk[j]), float(T(floats[j]))) << j;
}

/// The tests of LayerNorm rely on these limits to run both variants of its kernels.
TEST(TeamThatHolds, HasRoomForRowsOfWholeChunks) {
  if constexpr (!kernels_in_teams) GTEST_SKIP() << "This build's kernels hold no rows";
  const ExecutionSpace space;
  if (runs_on_host && team_size(space) < 2) GTEST_SKIP() << "One thread holds no rows of 768 columns";
  for (const std::size_t columns : {8u, 40u, 64u, 384u, 768u}) {
    const int threads = team_that_holds<1>(space, columns).threads;
    EXPECT_GE(static_cast<std::size_t>(threads * held_chunks<1>) * row_chunk, columns);
  }
  for (const std::size_t columns : {1u, 7u, 60u, 2056u}) EXPECT_EQ(team_that_holds<1>(space, columns).threads, 0);
}

TEST(AddPartialSums, TakesSeveralOfOneShape) {
  for (const std::size_t columns : {1u, 30u, 64u, 100u}) {
    const std::size_t blocks = 41;
    Values expected[3];
    Vector<float> sums[3];
    Matrix<float> partial[3];
    for (std::size_t index = 0; index < 3; ++index) {
      const Values values = random_values(blocks * columns, index);
      partial[index] = device_matrix<float>(values, blocks, columns);
      sums[index] = device_vector<float>(random_values(columns, 10 + index));
      expected[index] = host_values(sums[index]);
      for (std::size_t i = 0; i < values.size(); ++i) expected[index][i % columns] += values[i];
    }
    add_partial_sums(ExecutionSpace(), {{partial[0], sums[0]}, {partial[1], sums[1]}, {partial[2], sums[2]}});
    for (std::size_t index = 0; index < 3; ++index) {
      expect_near(host_values(sums[index]), expected[index], 2e-6, fmt::format("{} of {}", index, columns));
    }
  }
}

TEST(AddPartialSums, ShowsBothSidesOfShapesThatDiffer) {
  const Matrix<float> four("test::four", 2, 4), five("test::five", 2, 5);
  const Vector<float> sums("test::sums", 4);
  EXPECT_THAT(error_of([&] {
                add_partial_sums({}, {{four, sums}, {five, sums}});
              }),
              HasSubstr("partial sums 2 of 2: 5 columns for 4 of the first"));
}

}  // namespace
}  // namespace mylos
