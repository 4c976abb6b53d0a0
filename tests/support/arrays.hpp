#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"
#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

/// Device arrays for tests, and double-precision host arrays for their reference implementations.
namespace mylos::tests {

using Values = std::vector<double>;

/// The unit roundoff of T: half the distance between 1 and the next number.
template <class T>
inline constexpr double rounding = 0x1p-24;
template <>
inline constexpr double rounding<bfloat16> = 0x1p-8;
template <>
inline constexpr double rounding<half> = 0x1p-11;

/// Returns `n` values of T in [-scale, scale), as doubles, determined by the seed.
template <class T = float>
Values random_values(std::size_t n, std::uint64_t seed, double scale = 1.0) {
  Values values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const float unit = uniform(philox(seed, i, 77).word[0]);
    values[i] = static_cast<float>(T(static_cast<float>(scale * (2.0 * unit - 1.0))));
  }
  return values;
}

template <class T>
Vector<T> device_vector(const Values& values) {
  Vector<T> device("test::vector", values.size());
  const auto host = Kokkos::create_mirror_view(device);
  for (std::size_t i = 0; i < values.size(); ++i) host(i) = T(static_cast<float>(values[i]));
  Kokkos::deep_copy(device, host);
  return device;
}

template <class Index>
Vector<Index> device_integers(const std::vector<Index>& values) {
  Vector<Index> device("test::integers", values.size());
  const auto host = Kokkos::create_mirror_view(device);
  std::copy(values.begin(), values.end(), host.data());
  Kokkos::deep_copy(device, host);
  return device;
}

/// Returns an owning matrix with `values`, row-major.
template <class T>
Matrix<T> device_matrix(const Values& values, std::size_t rows, std::size_t columns) {
  Matrix<T> device("test::matrix", rows, columns);
  const auto host = Kokkos::create_mirror_view(device);
  for (std::size_t i = 0; i < values.size(); ++i) host.data()[i] = T(static_cast<float>(values[i]));
  Kokkos::deep_copy(device, host);
  return device;
}

/// Returns the elements of a vector or matrix, row-major.
template <class View>
Values host_values(const View& device) {
  const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), device);
  Values values(host.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(host.data()[i]);
  return values;
}

/// True if two arrays have identical bytes.
template <class View>
bool same_bits(const View& a, const View& b) {
  const auto host_a = Kokkos::create_mirror_view_and_copy(HostSpace(), a);
  const auto host_b = Kokkos::create_mirror_view_and_copy(HostSpace(), b);
  return host_a.size() == host_b.size() &&
         std::memcmp(host_a.data(), host_b.data(), host_a.size() * sizeof(typename View::value_type)) == 0;
}

/// Expects |actual - expected| <= tolerance (1 + |expected|) for each element. Reports only the worst element.
inline void expect_near(const Values& actual, const Values& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double worst = 0.0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    double error = std::fabs(actual[i] - expected[i]) / (1.0 + std::fabs(expected[i]));
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    if (error > worst) worst = error, at = i;
  }
  EXPECT_LE(worst, tolerance) << what << ": element " << at << " of " << actual.size() << " is "
                              << (actual.empty() ? 0.0 : actual[at]) << ", expected "
                              << (expected.empty() ? 0.0 : expected[at]);
}

/// Returns the derivative of loss() by `x`, by central differences. `loss` reads x.
template <class Loss>
double numeric_derivative(double& x, const Loss& loss, double step = 1e-5) {
  const double center = x;
  x = center + step;
  const double above = loss();
  x = center - step;
  const double below = loss();
  x = center;
  return (above - below) / (2.0 * step);
}

/// Returns the derivative of loss() by each element of `x`.
template <class Loss>
Values numeric_gradient(Values& x, const Loss& loss) {
  Values gradient;
  for (double& element : x) gradient.push_back(numeric_derivative(element, loss));
  return gradient;
}

template <class... Types, class Test>
void test_each_type(const Test& test) {
  const auto test_type = [&]<class T>() {
    SCOPED_TRACE(to_string(precision_of<T>));
    test.template operator()<T>();
  };
  (test_type.template operator()<Types>(), ...);
}

/// Returns an execution space of one thread if the backend can be partitioned, to test that results do not depend on
/// the thread count. On a device, returns the default one, because another stream would not wait for earlier launches
/// of the test.
inline ExecutionSpace one_thread() {
  if constexpr (!runs_on_host || kernels_in_teams) return {};  // a team may have all
  if (ExecutionSpace().concurrency() == 1) return {};          // Kokkos cannot divide it
  return Kokkos::Experimental::partition_space(ExecutionSpace(), 1, 1).front();
}

}  // namespace mylos::tests

/// Begins a test whose body is compiled and run for each of these types T.
#define MYLOS_TEST_OF_TYPES(suite, name, ...)                                         \
  template <class T>                                                                  \
  void suite##name();                                                                 \
  TEST(suite, name) {                                                                 \
    ::mylos::tests::test_each_type<__VA_ARGS__>([]<class T>() { suite##name<T>(); }); \
  }                                                                                   \
  template <class T>                                                                  \
  void suite##name()
/// The same for all types of elements.
#define MYLOS_TEST_OF_ELEMENTS(suite, name) MYLOS_TEST_OF_TYPES(suite, name, float, bfloat16, half)
