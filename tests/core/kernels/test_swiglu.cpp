#include "core/kernels/swiglu.hpp"

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

double swiglu_twin(double gate, double up) { return gate / (1.0 + std::exp(-gate)) * up; }

/// Calls check(rows, columns, gate and up, dy, name) for every size.
template <class T, class Check>
void for_swiglu_sizes(const Check& check) {
  for (const std::size_t rows : {1u, 3u, 200u}) {
    for (const std::size_t columns : {1u, 7u, 56u, 172u, 512u}) {
      check(rows, columns, random_values<T>(rows * 2 * columns, 1, 6.0), random_values<T>(rows * columns, 2),
            fmt::format("{} x {}", rows, columns));
    }
  }
}

MYLOS_TEST_OF_ELEMENTS(Swiglu, MatchesTheTwin) {
  for_swiglu_sizes<T>([](std::size_t rows, std::size_t columns, const Values& x, const Values&, const auto& name) {
    Values expected;
    for (std::size_t i = 0; i < rows * columns; ++i) {
      const std::size_t at = i / columns * 2 * columns + i % columns;
      expected.push_back(swiglu_twin(x[at], x[at + columns]));
    }
    const Matrix<T> y("test::y", rows, columns);
    swiglu<T>({}, device_matrix<T>(x, rows, 2 * columns), y);
    expect_near(host_values(y), expected, rounding<T> + 1e-6, name);
  });
}

MYLOS_TEST_OF_ELEMENTS(Swiglu, BackwardIsTheNumericDerivativeAndGivesTheResultAgain) {
  for_swiglu_sizes<T>([](std::size_t rows, std::size_t columns, const Values& x, const Values& dy, const auto& name) {
    Values expected(x.size());
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const std::size_t at = i / columns * 2 * columns + i % columns, other = at + columns;
      expected[at] = dy[i] * (swiglu_twin(x[at] + 1e-5, x[other]) - swiglu_twin(x[at] - 1e-5, x[other])) / 2e-5;
      expected[other] = dy[i] * (swiglu_twin(x[at], x[other] + 1e-5) - swiglu_twin(x[at], x[other] - 1e-5)) / 2e-5;
    }
    const auto gate_up = device_matrix<T>(x, rows, 2 * columns);
    const auto gradient = device_matrix<T>(dy, rows, columns);
    const Matrix<T> y("test::y", rows, columns);
    swiglu<T>({}, gate_up, y);
    swiglu_backward<T>({}, gate_up, gradient);
    expect_near(host_values(gate_up), expected, 2.0 * rounding<T> + 1e-6, name);
    EXPECT_TRUE(same_bits(gradient, y)) << name;
  });
}

TEST(SwigluRange, LargeGatesDoNotOverflow) {
  const auto gate_up = device_matrix<float>({-1000.0, -90.0, 90.0, 1000.0, 2.0, 2.0, 2.0, 2.0}, 1, 8);
  const auto dy = device_matrix<float>({1.0, 1.0, 1.0, 1.0}, 1, 4);
  swiglu_backward<float>({}, gate_up, dy);
  expect_near(host_values(dy), {0.0, 0.0, 180.0, 2000.0}, 1e-6, "y");
  expect_near(host_values(gate_up), {0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 90.0, 1000.0}, 1e-6, "gradients");
}

TEST(SwigluErrors, ShowBothSides) {
  const Matrix<float> gate_up("test::gate_up", 3, 8), y("test::y", 3, 5);
  EXPECT_THAT(error_of([&] { swiglu<float>({}, gate_up, y); }), HasSubstr("swiglu: gate and up of 3 x 8 for 3 x 5"));
  EXPECT_THAT(error_of([&] { swiglu_backward<float>({}, gate_up, y); }),
              HasSubstr("swiglu: gate and up of 3 x 8 for 3 x 5"));
}

}  // namespace
}  // namespace mylos
