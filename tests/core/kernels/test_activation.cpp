#include "core/kernels/activation.hpp"

#include "core/kernels/norms/layer_norm.hpp"
#include "tests/core/kernels/gelu_twin.hpp"
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

constexpr std::size_t all_rows[] = {1, 3, 1000};
constexpr std::size_t all_columns[] = {1, 7, 60, 384, 768};

/// Calls check(rows, columns, name) for every size.
template <class Check>
void for_sizes(const Check& check) {
  for (const std::size_t rows : all_rows) {
    for (const std::size_t columns : all_columns) check(rows, columns, fmt::format("{} x {}", rows, columns));
  }
}

MYLOS_TEST_OF_ELEMENTS(Activation, BiasGeluMatchesTheErrorFunction) {
  for_sizes([](std::size_t rows, std::size_t columns, const std::string& name) {
    const Values x = random_values<T>(rows * columns, 1, 4.0), bias = random_values<T>(columns, 2);
    Values biased(x.size()), expected(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      biased[i] = x[i] + bias[i % columns];
      expected[i] = gelu_twin(biased[i]);
    }
    const auto pre = device_matrix<T>(x, rows, columns);
    const Matrix<T> y("test::y", rows, columns), again("test::again", rows, columns);
    bias_gelu<T>(ExecutionSpace(), device_vector<T>(bias), pre, y);
    expect_near(host_values(pre), biased, 2.0 * rounding<T>, name + " pre");
    expect_near(host_values(y), expected, 4.0 * rounding<T>, name + " y");
    gelu<T>(ExecutionSpace(), ConstMatrix<T>(pre), again);
    EXPECT_TRUE(same_bits(y, again)) << name;
  });
}

/// The activation has the bits of `gelu`, and the sums those of `add_column_sums`.
MYLOS_TEST_OF_ELEMENTS(Activation, GeluBackwardIsTheNumericDerivativeWithItsColumnSums) {
  for_sizes([](std::size_t rows, std::size_t columns, const std::string& name) {
    const Values x = random_values<T>(rows * columns, 1, 4.0), dy = random_values<T>(rows * columns, 2);
    Values expected(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      expected[i] = dy[i] * (gelu_twin(x[i] + 1e-5) - gelu_twin(x[i] - 1e-5)) / 2e-5;
    }
    const Values before = random_values(columns, 3);
    const auto pre = device_matrix<T>(x, rows, columns), gradient = device_matrix<T>(dy, rows, columns);
    const auto sums = device_vector<float>(before), sums_of_gradient = device_vector<float>(before);
    const Vector<float> workspace("test::workspace", column_sum_workspace(rows, columns));
    const Matrix<T> activation("test::activation", rows, columns);
    gelu<T>(ExecutionSpace(), ConstMatrix<T>(pre), activation);
    gelu_backward<T>(ExecutionSpace(), pre, gradient, sums, workspace);
    expect_near(host_values(gradient), expected, 2.0 * rounding<T> + 5e-7, name);
    EXPECT_TRUE(same_bits(pre, activation)) << name;
    add_column_sums<T>(ExecutionSpace(), gradient, sums_of_gradient, workspace);
    EXPECT_TRUE(same_bits(sums, sums_of_gradient)) << name;
  });
}

MYLOS_TEST_OF_ELEMENTS(Activation, AddBiasAddsToEveryRow) {
  for_sizes([](std::size_t rows, std::size_t columns, const std::string& name) {
    const Values x = random_values<T>(rows * columns, 1), bias = random_values<T>(columns, 2);
    Values expected = x;
    for (std::size_t i = 0; i < x.size(); ++i) expected[i] += bias[i % columns];
    const auto device = device_matrix<T>(x, rows, columns);
    add_bias<T>(ExecutionSpace(), device_vector<T>(bias), device);
    expect_near(host_values(device), expected, rounding<T>, name);
  });
}

MYLOS_TEST_OF_ELEMENTS(Activation, ColumnSumsAddUpAndDoNotDependOnThreads) {
  for_sizes([](std::size_t rows, std::size_t columns, const std::string& name) {
    const Values x = random_values<T>(rows * columns, 1), before = random_values(columns, 2);
    Values expected = before;
    for (std::size_t i = 0; i < x.size(); ++i) expected[i % columns] += x[i];
    const auto device = device_matrix<T>(x, rows, columns);
    const auto sums = device_vector<float>(before), again = device_vector<float>(before);
    const Vector<float> workspace("test::workspace", column_sum_workspace(rows, columns));
    add_column_sums<T>(ExecutionSpace(), device, sums, workspace);
    add_column_sums<T>(one_thread(), device, again, workspace);
    expect_near(host_values(sums), expected, 1e-6 * std::sqrt(static_cast<double>(rows)), name);
    EXPECT_TRUE(same_bits(sums, again)) << name;
  });
}

MYLOS_TEST_OF_ELEMENTS(Activation, ConvertRoundsOnce) {
  for (const std::size_t n : {1u, 7u, 4096u, 10000u}) {
    const Values x = random_values(n, 3, 100.0);
    const Vector<T> narrow("test::narrow", n);
    const Vector<float> wide("test::wide", n);
    convert<float, T>(ExecutionSpace(), device_vector<float>(x), narrow);
    convert<T, float>(ExecutionSpace(), narrow, wide);
    Values expected = x;
    for (double& value : expected) value = static_cast<float>(T(static_cast<float>(value)));
    expect_near(host_values(wide), expected, 0.0, fmt::format("{} elements", n));
  }
}

/// The results have the same bits as with arrays aligned to 16 bytes.
MYLOS_TEST_OF_ELEMENTS(Activation, ArraysMayBeginAnywhere) {
  constexpr std::size_t rows = 5, columns = 48, size = rows * columns;
  const Values x = random_values<T>(size, 1), dy = random_values<T>(size, 2), bias = random_values<T>(columns, 3);
  const auto results = [&](std::size_t shift) {
    const auto position = [&](const Values& values) {
      Values padded(shift, 0.0);
      padded.insert(padded.end(), values.begin(), values.end());
      return device_vector<T>(padded);
    };
    const Vector<T> pre = position(x), again = position(x), gradient = position(dy), added = position(bias),
                    y = position(x), before = position(x);
    const Vector<float> sums("test::sums", columns), workspace("test::workspace", column_sum_workspace(rows, columns));
    const auto matrix = [&](const Vector<T>& all) { return as_matrix(slice(all, shift, shift + size), rows, columns); };
    bias_gelu<T>(ExecutionSpace(), slice(added, shift, shift + columns), matrix(pre), matrix(y));
    gelu_backward<T>(ExecutionSpace(), matrix(before), matrix(gradient), sums, workspace);
    add_bias<T>(ExecutionSpace(), slice(added, shift, shift + columns), matrix(again));
    Values all = host_values(sums);
    for (const Vector<T>& one : {pre, y, gradient, before, again}) {
      const Values values = host_values(slice(one, shift, shift + size));
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const Values aligned = results(0);
  for (const std::size_t shift : {1u, 4u}) {
    expect_near(results(shift), aligned, 0.0, fmt::format("shifted by {}", shift));
  }
}

TEST(ActivationErrors, ShowBothSides) {
  const ExecutionSpace space;
  const Matrix<float> x("test::x", 3, 4), y("test::y", 2, 4);
  const Vector<float> three("test::three", 3), four("test::four", 4), small("test::small", 2);
  EXPECT_THAT(error_of([&] { add_bias<float>(space, three, x); }), HasSubstr("bias of 3 elements for 4 columns"));
  EXPECT_THAT(error_of([&] { bias_gelu<float>(space, four, x, y); }), HasSubstr("bias_gelu: 3 x 4 and 2 x 4"));
  EXPECT_THAT(error_of([&] { gelu<float>(space, x, y); }), HasSubstr("gelu: 3 x 4 and 2 x 4"));
  EXPECT_THAT(error_of([&] { gelu_backward<float>(space, x, y, four, four); }),
              HasSubstr("gelu_backward: 3 x 4 and 2 x 4"));
  EXPECT_THAT(error_of([&] { gelu_backward<float>(space, x, x, three, four); }),
              HasSubstr("bias of 3 elements for 4 columns"));
  EXPECT_THAT(error_of([&] { gelu_backward<float>(space, x, x, four, small); }),
              HasSubstr("column sums of 3 x 4: the workspace has 2 floats, 4 are needed"));
  EXPECT_THAT(error_of([&] { add_column_sums<float>(space, x, four, small); }),
              HasSubstr("column sums of 3 x 4: the workspace has 2 floats, 4 are needed"));
  EXPECT_THAT(error_of([&] { convert<float, float>(space, three, four); }), HasSubstr("convert: 3 elements to 4"));
}

}  // namespace
}  // namespace mylos
