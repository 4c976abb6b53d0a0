#include "core/kernels/largest_column.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace mylos {
namespace {

using namespace tests;

TEST(LargestColumn, IsTheFirstOfTheLargest) {
  for (const std::size_t columns : {1u, 2u, 31u, 1000u}) {
    constexpr std::size_t rows = 23;
    Values x = random_values(rows * columns, columns);
    for (double& value : x) value = static_cast<float>(std::round(value * 20.0));  // creates many ties
    const Vector<float> largest("test::largest", rows);
    largest_column({}, device_matrix<float>(x, rows, columns), largest);
    Values expected;
    for (std::size_t row = 0; row < rows; ++row) {
      const auto first = x.begin() + static_cast<std::ptrdiff_t>(row * columns);
      expected.push_back(
          static_cast<double>(std::max_element(first, first + static_cast<std::ptrdiff_t>(columns)) - first));
    }
    expect_near(host_values(largest), expected, 0.0, "columns");
  }
}

TEST(LargestColumn, HasAnAnswerWithoutNumbers) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Vector<float> largest("test::largest", 3);
  largest_column({}, device_matrix<float>({nan, nan, -infinity, -infinity, nan, 1.0}, 3, 2), largest);
  expect_near(host_values(largest), {0.0, 0.0, 1.0}, 0.0, "columns");
}

TEST(LargestColumn, RefusesAnotherNumberOfRows) {
  EXPECT_THAT(error_of([] { largest_column({}, Matrix<float>("test::x", 3, 2), Vector<float>("test::y", 2)); }),
              ::testing::HasSubstr("largest_column: 2 results for 3 rows"));
}

}  // namespace
}  // namespace mylos
