#include "core/kernels/embedding.hpp"

#include "core/batch.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

/// Returns indices below `table`, with large groups of equal indices and rows that never occur.
std::vector<std::int32_t> random_indices(std::size_t rows, std::size_t table) {
  std::vector<std::int32_t> indices;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto index = static_cast<std::int32_t>(uniform_below(table, 9, 0, row));
    indices.push_back(row % 3 == 0 ? 0 : index);
  }
  return indices;
}

Batch batch_of(const std::vector<std::int32_t>& indices) {
  Batch batch;
  const std::size_t length = indices.size();
  const std::uint32_t id = 0;
  batch.reset(std::span(&length, 1), std::span(&id, 1));
  batch.set_indices("tokens", indices);
  return batch;
}

MYLOS_TEST_OF_ELEMENTS(Embedding, LooksUpAndAdds) {
  for (const std::size_t rows : {1u, 3u, 1000u}) {
    for (const std::size_t columns : {1u, 7u, 60u, 384u, 768u}) {
      const std::vector<std::int32_t> indices = random_indices(rows, 50);
      const Values table = random_values<T>(50 * columns, 1);
      const auto device = device_matrix<T>(table, 50, columns);
      const Matrix<T> y("test::y", rows, columns);
      Values expected(rows * columns);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] = table[static_cast<std::size_t>(indices[i / columns]) * columns + i % columns];
      }
      embedding_lookup<T>(ExecutionSpace(), device_integers(indices), device, false, y);
      expect_near(host_values(y), expected, 0.0, fmt::format("{} x {}", rows, columns));
      for (double& value : expected) value *= 2.0;
      embedding_lookup<T>(ExecutionSpace(), device_integers(indices), device, true, y);
      expect_near(host_values(y), expected, 0.0, fmt::format("{} x {} added", rows, columns));
    }
  }
}

/// Tests indices of tokens, most of which have few rows, and of two segments.
template <class T>
void check_gradient(std::size_t rows, std::size_t columns, std::size_t table, std::int32_t padding = no_padding) {
  const std::vector<std::int32_t> indices = random_indices(rows, table);
  const Batch batch = batch_of(indices);
  const Values dy = random_values<T>(rows * columns, 1), before = random_values(table * columns, 2);
  Values expected = before;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const std::int32_t index = indices[i / columns];
    if (index != padding) expected[static_cast<std::size_t>(index) * columns + i % columns] += dy[i];
  }
  const auto dtable = device_matrix<float>(before, table, columns);
  const auto again = device_matrix<float>(before, table, columns);
  const auto gradient = device_matrix<T>(dy, rows, columns);
  embedding_gradient<T>(ExecutionSpace(), batch.groups("tokens"), gradient, dtable, padding);
  embedding_gradient<T>(one_thread(), batch.groups("tokens"), gradient, again, padding);
  expect_near(host_values(dtable), expected, 2e-5, fmt::format("{} x {} of {}", rows, columns, table));
  EXPECT_TRUE(same_bits(dtable, again));
}

MYLOS_TEST_OF_ELEMENTS(Embedding, GradientIsTheTransposedLookup) {
  for (const std::size_t rows : {1u, 3u, 1000u}) {
    for (const std::size_t columns : {1u, 7u, 60u, 384u, 768u}) {
      for (const std::size_t table : {50u, 2u}) check_gradient<T>(rows, columns, table);
    }
  }
}

MYLOS_TEST_OF_ELEMENTS(Embedding, PaddingGetsNoGradient) {
  for (const std::size_t columns : {7u, 384u}) {
    check_gradient<T>(1000, columns, 50, 3);
    check_gradient<T>(1000, columns, 2, 0);
  }
}

TEST(EmbeddingErrors, ShowBothSides) {
  const Matrix<float> table("test::table", 50, 4), y("test::y", 3, 4), wide("test::wide", 3, 5);
  const Batch batch = batch_of({1, 2});
  EXPECT_THAT(error_of([&] { embedding_lookup<float>({}, batch.integers("tokens"), table, false, y); }),
              HasSubstr("embedding: 2 indices into 50 x 4 for 3 x 4"));
  EXPECT_THAT(error_of([&] { embedding_gradient<float>({}, batch.groups("tokens"), wide, table); }),
              HasSubstr("embedding gradient: groups of 2 rows and 3 x 5 for 50 x 4"));
}

}  // namespace
}  // namespace mylos
