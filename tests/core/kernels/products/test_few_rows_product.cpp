#include "core/kernels/products/few_rows_product.hpp"

#include "core/device.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

struct FewRowsCase {
  std::size_t rows, inner, outputs;
};
constexpr FewRowsCase few_rows_cases[] = {{1, 1, 1},    {1, 16, 4},  {2, 15, 3},    {3, 17, 5},
                                          {4, 768, 64}, {7, 33, 41}, {13, 100, 23}, {5, 2048, 9}};

Values few_rows_twin(const Values& x, const Values& weight, const FewRowsCase& of) {
  Values y(of.rows * of.outputs);
  for (std::size_t row = 0; row < of.rows; ++row) {
    for (std::size_t output = 0; output < of.outputs; ++output) {
      for (std::size_t k = 0; k < of.inner; ++k) {
        y[row * of.outputs + output] += x[row * of.inner + k] * weight[output * of.inner + k];
      }
    }
  }
  return y;
}

template <class T, class Out>
Matrix<Out> product_of_few_rows(const ConstMatrix<T>& x, const ConstMatrix<T>& weight,
                                const ExecutionSpace& space = {}) {
  const Matrix<Out> y("test::y", x.extent(0), weight.extent(0));
  Kokkos::deep_copy(y, Out(std::nanf("")));
  few_rows_product<T, Out>(space, x, weight, y);
  space.fence("test::product");
  return y;
}

MYLOS_TEST_OF_ELEMENTS(FewRowsProduct, IsThatOfTheTwin) {
  for (const FewRowsCase& of : few_rows_cases) {
    const std::string name = fmt::format("{} x {} by {}", of.rows, of.inner, of.outputs);
    const Values x = random_values<T>(of.rows * of.inner, 1), weight = random_values<T>(of.outputs * of.inner, 2);
    const auto dx = device_matrix<T>(x, of.rows, of.inner), dweight = device_matrix<T>(weight, of.outputs, of.inner);
    const Values expected = few_rows_twin(x, weight, of);
    // A thread of a team adds its products one after the other, a host thread in many partial sums.
    const auto inner = static_cast<double>(of.inner);
    const double sums = kernels_in_teams ? 3e-8 * inner : 1e-7 * std::sqrt(inner);
    expect_near(host_values(product_of_few_rows<T, float>(dx, dweight)), expected, 2e-7 + sums, name);
    expect_near(host_values(product_of_few_rows<T, T>(dx, dweight)), expected, rounding<T> + 2e-7 + sums, name);
    const Values bias = random_values<T>(of.outputs, 3);
    Values with_bias = expected;
    for (std::size_t i = 0; i < with_bias.size(); ++i) with_bias[i] += bias[i % of.outputs];
    const Matrix<T> y("test::y", of.rows, of.outputs);
    few_rows_product<T, T>({}, dx, dweight, y, device_vector<T>(bias));
    expect_near(host_values(y), with_bias, rounding<T> + 2e-7 + sums, name + " with a bias");
  }
}

/// The bits do not depend on the other rows, the number of threads, or the alignment of arrays.
MYLOS_TEST_OF_ELEMENTS(FewRowsProduct, ARowHasTheSameBitsInEveryCompany) {
  constexpr std::size_t most = 9, inner = 171, outputs = 35;
  const Values x = random_values<T>(most * inner, 3);
  const auto weight = device_matrix<T>(random_values<T>(outputs * inner, 4), outputs, inner);
  const auto whole = product_of_few_rows<T, T>(device_matrix<T>(x, most, inner), weight);
  for (std::size_t rows = 1; rows <= most; ++rows) {
    for (std::size_t first = 0; first + rows <= most; ++first) {
      const auto begin = x.begin() + static_cast<std::ptrdiff_t>(first * inner);
      const Values part(begin, begin + static_cast<std::ptrdiff_t>(rows * inner));
      const auto y = product_of_few_rows<T, T>(device_matrix<T>(part, rows, inner), weight, one_thread());
      const Matrix<T> same(whole.data() + first * outputs, rows, outputs);
      EXPECT_TRUE(same_bits(y, same)) << rows << " rows from " << first;
    }
  }
}

MYLOS_TEST_OF_ELEMENTS(FewRowsProduct, RefusesSizesThatDoNotFit) {
  const Matrix<T> x("test::x", 2, 5), weight("test::weight", 3, 4);
  const std::string error = error_of([&] { few_rows_product<T, T>({}, x, weight, Matrix<T>("test::y", 2, 3)); });
  EXPECT_THAT(error, HasSubstr("2 x 5 by the transpose of 3 x 4 is not 2 x 3"));
  const Matrix<T> of_x("test::x", 2, 4);
  EXPECT_THAT(error_of([&] {
                few_rows_product<T, T>({}, of_x, weight, Matrix<T>("test::y", 2, 3), Vector<T>("test::bias", 2));
              }),
              HasSubstr("a bias of 2 for 3 columns"));
}

}  // namespace
}  // namespace mylos
