#include "core/kernels/norms/rms_norm.hpp"

#include "core/kernels/norms/layer_norm.hpp"
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

constexpr float rms_epsilon = 1e-3f;

/// The forward pass and its loss sum(dy * y), computed naively in double.
struct RmsTwin {
  std::size_t rows, columns;
  bool with_residual;
  Values x, residual, weight, dy;

  template <class T>
  static RmsTwin random(std::size_t rows, std::size_t columns, bool with_residual) {
    return {rows,
            columns,
            with_residual,
            random_values<T>(rows * columns, 1, 2.0),
            with_residual ? random_values<T>(rows * columns, 2) : Values(rows * columns, 0.0),
            random_values<T>(columns, 3),
            random_values<T>(rows * columns, 4)};
  }
  Values z() const {
    Values sum = x;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += residual[i];
    return sum;
  }
  double inverse(const Values& z, std::size_t row) const {
    double squares = 0.0;
    for (std::size_t i = 0; i < columns; ++i) squares += z[row * columns + i] * z[row * columns + i];
    return 1.0 / std::sqrt(squares / static_cast<double>(columns) + static_cast<double>(rms_epsilon));
  }
  /// Returns inverse() of each row.
  Values inverses(const Values& z) const {
    Values result(rows);
    for (std::size_t row = 0; row < rows; ++row) result[row] = inverse(z, row);
    return result;
  }
  Values y(const Values& z) const {
    const Values factors = inverses(z);
    Values result(z.size());
    for (std::size_t i = 0; i < z.size(); ++i) result[i] = z[i] * factors[i / columns] * weight[i % columns];
    return result;
  }
  /// Returns the loss of one row.
  double loss(const Values& z, std::size_t row) const {
    double sum = 0.0;
    const double factor = inverse(z, row);
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
      sum += dy[i] * z[i] * factor * weight[i % columns];
    }
    return sum;
  }
};

template <class T>
struct RmsDevice {
  RmsNormSaved<T> saved;
  Matrix<T> residual, y, dy, dz;
  RmsNormParameters<T> parameters;
  Vector<float> dweight, workspace;

  explicit RmsDevice(const RmsTwin& twin)
      : saved{device_matrix<T>(twin.x, twin.rows, twin.columns), Vector<float>("test::inverse", twin.rows)},
        y("test::y", twin.rows, twin.columns),
        dy(device_matrix<T>(twin.dy, twin.rows, twin.columns)),
        dz("test::dz", twin.rows, twin.columns),
        parameters{device_vector<T>(twin.weight), rms_epsilon},
        dweight("test::dweight", twin.columns),
        workspace("test::workspace", column_sum_workspace(twin.rows, twin.columns)) {
    if (twin.with_residual) residual = device_matrix<T>(twin.residual, twin.rows, twin.columns);
  }
  void forward(const ExecutionSpace& space = {}) { residual_rms_norm<T>(space, residual, parameters, saved, y); }
  void backward(const ExecutionSpace& space = {}) {
    rms_norm_backward<T>(space, parameters, saved, dy, dz, dweight, workspace);
  }
};

/// Calls check(rows, columns, with residual, name) for every size.
template <class Check>
void for_rms_cases(const Check& check) {
  for (const std::size_t rows : {1u, 3u, 301u}) {
    for (const std::size_t columns : {1u, 7u, 60u, 384u, 768u, 2056u, 4104u, 8200u}) {
      if (rows * columns > 300000) continue;
      for (const bool with_residual : {false, true}) {
        check(rows, columns, with_residual,
              fmt::format("{} x {} {} residual", rows, columns, with_residual ? "with" : "without"));
      }
    }
  }
}

MYLOS_TEST_OF_ELEMENTS(RmsNorm, ForwardMatchesTheTwin) {
  for_rms_cases([](std::size_t rows, std::size_t columns, bool with_residual, const std::string& name) {
    const RmsTwin twin = RmsTwin::random<T>(rows, columns, with_residual);
    RmsDevice<T> device(twin);
    device.forward();
    const Values z = twin.z();
    expect_near(host_values(device.saved.input), z, 2.0 * rounding<T>, name + " z");
    expect_near(host_values(device.saved.inverse), twin.inverses(z), 4.0 * rounding<T> + 2e-6, name + " inverse");
    expect_near(host_values(device.y), twin.y(z), 6.0 * rounding<T> + 2e-6, name + " y");
  });
}

MYLOS_TEST_OF_ELEMENTS(RmsNorm, AStoredSumGivesTheSameBits) {
  for_rms_cases([](std::size_t rows, std::size_t columns, bool with_residual, const std::string& name) {
    const RmsTwin twin = RmsTwin::random<T>(rows, columns, with_residual);
    RmsDevice<T> device(twin), second(twin);
    device.forward();
    const Matrix<T> again("test::again", rows, columns);
    rms_norm_again<T>({}, device.parameters, device.saved, again);
    EXPECT_TRUE(same_bits(again, device.y)) << name;
    // As in a recomputed layer: the sum exists, and the norm is computed again without the residual.
    Kokkos::deep_copy(second.saved.input, device.saved.input);
    second.residual = {};
    second.forward();
    EXPECT_TRUE(same_bits(second.y, device.y)) << name;
    EXPECT_TRUE(same_bits(second.saved.inverse, device.saved.inverse)) << name;
  });
}

/// Checks the numeric Jacobian of three rows, and column sums over all rows by their formula.
MYLOS_TEST_OF_ELEMENTS(RmsNorm, BackwardAddsTheNumericJacobian) {
  for_rms_cases([](std::size_t rows, std::size_t columns, bool with_residual, const std::string& name) {
    const RmsTwin twin = RmsTwin::random<T>(rows, columns, with_residual);
    RmsDevice<T> device(twin);
    Kokkos::deep_copy(device.dz, T(0.5f));
    Kokkos::deep_copy(device.dweight, 0.25f);
    device.forward();
    device.backward();
    Values z = twin.z(), dweight(columns, 0.25);
    const Values dz = host_values(device.dz);
    const double bound = 12.0 * rounding<T> + 5e-6;
    for (std::size_t row = 0; row < rows; row += std::max<std::size_t>(1, rows / 2)) {
      for (std::size_t i = row * columns; i < (row + 1) * columns; i += std::max<std::size_t>(1, columns / 40)) {
        const double slope = numeric_derivative(z[i], [&] { return twin.loss(z, row); });
        ASSERT_NEAR(dz[i], 0.5 + slope, bound * (1.0 + std::fabs(slope)) * (columns == 1 ? 40.0 : 1.0))
            << name << " element " << i;
      }
    }
    const Values factors = twin.inverses(z);
    for (std::size_t i = 0; i < z.size(); ++i) dweight[i % columns] += twin.dy[i] * z[i] * factors[i / columns];
    expect_near(host_values(device.dweight), dweight, (4.0 * rounding<T> + 1e-6) * std::sqrt(static_cast<double>(rows)),
                name + " dweight");
  });
}

MYLOS_TEST_OF_ELEMENTS(RmsNorm, GivesTheSameBitsOnOneThread) {
  const RmsTwin twin = RmsTwin::random<T>(333, 100, true);
  RmsDevice<T> all(twin), one(twin);
  all.forward();
  all.backward();
  one.forward(one_thread());
  one.backward(one_thread());
  EXPECT_TRUE(same_bits(all.y, one.y));
  EXPECT_TRUE(same_bits(all.dz, one.dz));
  EXPECT_TRUE(same_bits(all.dweight, one.dweight));
}

TEST(RmsNormErrors, ShowBothSides) {
  const auto message = [](const auto& change) {
    RmsDevice<float> device(RmsTwin::random<float>(3, 4, true));
    change(device);
    return error_of([&] {
      device.forward();
      device.backward();
    });
  };
  EXPECT_THAT(message([](auto& d) { d.parameters.weight = Vector<float>("test::w", 5); }),
              HasSubstr("RMSNorm of 4 columns: weight has 5"));
  EXPECT_THAT(message([](auto& d) { d.saved.inverse = Vector<float>("test::i", 2); }),
              HasSubstr("RMSNorm of 3 x 4: saved are 3 x 4 and 2 inverses"));
  EXPECT_THAT(message([](auto& d) { d.residual = Matrix<float>("test::r", 2, 4); }),
              HasSubstr("RMSNorm of 3 x 4: the residual is 2 x 4"));
  EXPECT_THAT(message([](auto& d) { d.dz = Matrix<float>("test::dz", 3, 5); }),
              HasSubstr("RMSNorm of 3 x 4: dz is 3 x 5"));
}

}  // namespace
}  // namespace mylos
