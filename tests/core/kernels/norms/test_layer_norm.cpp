#include "core/kernels/norms/layer_norm.hpp"

#include "tests/core/kernels/dropout_twin.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace mylos {
namespace {

using namespace tests;
using ::testing::HasSubstr;

constexpr float epsilon = 1e-5f;

/// The forward pass and its loss sum(dy * y), computed naively in double.
struct Twin {
  std::size_t rows, columns;
  DropoutKey dropout;
  bool residual_form;  ///< z = residual + dropout(x + bias), y = LayerNorm(z); else y = dropout(LayerNorm(x))
  Values x, bias, residual, weight, shift, dy;
  Packing packing;
  Values factors;

  template <class T>
  static Twin random(std::size_t rows, std::size_t columns, float probability, bool residual_form) {
    const std::size_t size = rows * columns;
    Twin twin{rows,
              columns,
              {.seed = 5, .step = 6, .site = 7, .probability = probability},
              residual_form,
              random_values<T>(size, 1, 2.0),
              random_values<T>(columns, 2),
              random_values<T>(size, 3),
              random_values<T>(columns, 4),
              random_values<T>(columns, 5),
              random_values<T>(size, 6),
              Packing(rows),
              {}};
    twin.factors = twin.packing.factors(twin.dropout, columns);
    if (!residual_form) twin.bias.assign(columns, 0.0), twin.residual.assign(size, 0.0);
    return twin;
  }
  double factor(std::size_t row, std::size_t column) const { return factors[row * columns + column]; }

  Values z_of(std::size_t row) const {
    Values z(columns);
    for (std::size_t i = 0; i < columns; ++i) {
      const std::size_t at = row * columns + i;
      z[i] = residual_form ? residual[at] + (x[at] + bias[i]) * factor(row, i) : x[at];
    }
    return z;
  }
  static std::pair<double, double> statistics(const Values& z) {
    double mean = 0.0, variance = 0.0;
    for (const double value : z) mean += value / static_cast<double>(z.size());
    for (const double value : z) variance += (value - mean) * (value - mean) / static_cast<double>(z.size());
    return {mean, 1.0 / std::sqrt(variance + static_cast<double>(epsilon))};
  }
  Values y_of(const Values& z, std::size_t row) const {
    const auto [mean, inverse] = statistics(z);
    Values y(columns);
    for (std::size_t i = 0; i < columns; ++i) {
      y[i] = ((z[i] - mean) * inverse * weight[i] + shift[i]) * (residual_form ? 1.0 : factor(row, i));
    }
    return y;
  }
  double loss_of(const Values& z, std::size_t row) const {
    const Values y = y_of(z, row);
    double loss = 0.0;
    for (std::size_t i = 0; i < columns; ++i) loss += dy[row * columns + i] * y[i];
    return loss;
  }
};

/// Start of each array, in elements after a multiple of 16 bytes.
struct Shift {
  std::size_t elements = 0;
};

template <class T>
struct Device {
  Matrix<T> x, residual, y, dy, dz, dx;
  LayerNormSaved<T> saved;
  LayerNormParameters<T> parameters;
  Vector<T> bias;
  Vector<float> dweight, dshift, dbias, workspace;
  DropoutRows rows;
  DropoutKey dropout;

  explicit Device(const Twin& twin)
      : x(device_matrix<T>(twin.x, twin.rows, twin.columns)),
        residual(device_matrix<T>(twin.residual, twin.rows, twin.columns)),
        y("test::y", twin.rows, twin.columns),
        dy(device_matrix<T>(twin.dy, twin.rows, twin.columns)),
        dz("test::dz", twin.rows, twin.columns),
        dx("test::dx", twin.rows, twin.columns),
        saved{x, Vector<float>("test::mean", twin.rows), Vector<float>("test::inverse", twin.rows)},
        parameters{device_vector<T>(twin.weight), device_vector<T>(twin.shift), epsilon},
        bias(device_vector<T>(twin.bias)),
        dweight("test::dweight", twin.columns),
        dshift("test::dshift", twin.columns),
        dbias("test::dbias", twin.columns),
        workspace("test::workspace", column_sum_workspace(twin.rows, twin.columns)),
        rows(twin.packing.device()),
        dropout(twin.dropout) {}

  /// Copies the same values to arrays with another alignment.
  Device(const Twin& twin, const Shift& shift) : Device(twin) {
    for (Matrix<T>* matrix : {&x, &residual, &y, &dy, &dz, &dx}) *matrix = shifted(*matrix, shift);
    saved.input = x;
  }
  Matrix<T> shifted(const Matrix<T>& matrix, const Shift& shift) {
    buffers.push_back(Vector<T>("test::shifted", shift.elements + matrix.size()));
    const Vector<T> copy = slice(buffers.back(), shift.elements, shift.elements + matrix.size());
    Kokkos::deep_copy(copy, Vector<T>(matrix.data(), matrix.size()));
    return as_matrix(copy, matrix.extent(0), matrix.extent(1));
  }
  std::vector<Vector<T>> buffers;

  void forward(const Twin& twin, const ExecutionSpace& space = {}) {
    if (twin.residual_form) {
      bias_dropout_residual_layer_norm<T>(space, dropout, rows, x, bias, residual, parameters, saved, y);
    } else {
      layer_norm_dropout<T>(space, dropout, rows, parameters, saved, y);
    }
  }
  void backward(const Twin& twin, const ExecutionSpace& space = {}) {
    if (twin.residual_form) {
      bias_dropout_residual_layer_norm_backward<T>(space, dropout, rows, dy, parameters, saved, dz, dx, dweight, dshift,
                                                   dbias, workspace);
    } else {
      layer_norm_dropout_backward<T>(space, dropout, rows, dy, parameters, saved, dz, dweight, dshift, workspace);
    }
  }
};

/// With few columns, some rows have a variance near 0, and derivatives of the order of 1 / sqrt(epsilon).
double steepness(std::size_t columns) { return columns == 1 ? 320.0 : columns < 10 ? 8.0 : 2.0; }

struct Case {
  std::size_t rows, columns;
  float probability;
  bool residual_form;
  Shift shift = {};

  std::string name() const {
    return fmt::format("{} x {}, dropout {}, {}, shifted by {}", rows, columns, probability,
                       residual_form ? "residual" : "plain", shift.elements);
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::size_t rows : {1u, 3u, 1000u}) {
    for (const std::size_t columns : {1u, 7u, 60u, 384u, 768u}) {
      for (const float probability : {0.0f, 0.1f}) {
        for (const bool residual_form : {true, false}) all.push_back({rows, columns, probability, residual_form});
      }
    }
  }
  // One chunk per row, fewer chunks than threads, more than one and more than two for each thread of a device in the
  // backward pass, and unaligned chunks.
  for (const bool residual_form : {true, false}) {
    for (const std::size_t columns : {8u, 40u, 2056u, 4104u}) {
      all.push_back({columns < 2056 ? 35u : columns < 4104 ? 3u : 1u, columns, 0.1f, residual_form});
    }
    for (const std::size_t shift : {1u, 4u}) all.push_back({35, 384, 0.1f, residual_form, {shift}});
  }
  return all;
}

MYLOS_TEST_OF_ELEMENTS(LayerNorm, ForwardMatchesTheTwin) {
  for (const Case& c : cases()) {
    const Twin twin = Twin::random<T>(c.rows, c.columns, c.probability, c.residual_form);
    Device<T> device(twin, c.shift);
    device.forward(twin);
    Values z, y, mean, inverse;
    for (std::size_t row = 0; row < c.rows; ++row) {
      const Values z_row = twin.z_of(row), y_row = twin.y_of(z_row, row);
      z.insert(z.end(), z_row.begin(), z_row.end());
      y.insert(y.end(), y_row.begin(), y_row.end());
      mean.push_back(Twin::statistics(z_row).first);
      inverse.push_back(Twin::statistics(z_row).second);
    }
    const double bound = 4.0 * rounding<T> * steepness(c.columns);
    expect_near(host_values(device.saved.input), z, 3.0 * rounding<T>, c.name() + " z");
    expect_near(host_values(device.y), y, bound + 2e-6, c.name() + " y");
    expect_near(host_values(device.saved.mean), mean, bound, c.name() + " mean");
    expect_near(host_values(device.saved.inverse), inverse, bound + 2e-6, c.name() + " inverse");
    if (!c.residual_form) continue;
    const Matrix<T> again("test::again", c.rows, c.columns);
    layer_norm_again<T>({}, device.parameters, device.saved, again);
    EXPECT_TRUE(same_bits(again, device.y)) << c.name();
  }
}

/// Checks the numeric derivative by elements of three rows, and column sums over all rows by their formula.
MYLOS_TEST_OF_ELEMENTS(LayerNorm, BackwardMatchesTheNumericJacobianAndAddsColumnSums) {
  for (const Case& c : cases()) {
    const Twin twin = Twin::random<T>(c.rows, c.columns, c.probability, c.residual_form);
    Device<T> device(twin, c.shift);
    Kokkos::deep_copy(device.dweight, 0.5f);
    device.forward(twin);
    device.backward(twin);
    const Values dz = host_values(device.dz), dx = host_values(device.dx);
    const double bound = 8.0 * rounding<T> * steepness(c.columns) + 5e-6;
    Values dweight(c.columns, 0.5), dshift(c.columns, 0.0), dbias(c.columns, 0.0);
    for (std::size_t row = 0; row < c.rows; ++row) {
      Values z = twin.z_of(row);
      const auto [mean, inverse] = Twin::statistics(z);
      for (std::size_t i = 0; i < c.columns; ++i) {
        const double d = twin.dy[row * c.columns + i] * (c.residual_form ? 1.0 : twin.factor(row, i));
        dweight[i] += d * (z[i] - mean) * inverse;
        dshift[i] += d;
        dbias[i] += dx[row * c.columns + i];
      }
      if (row % std::max<std::size_t>(1, c.rows / 2) != 0) continue;
      for (std::size_t i = row % 3; i < c.columns; i += std::max<std::size_t>(1, c.columns / 40)) {
        const double slope = numeric_derivative(z[i], [&] { return twin.loss_of(z, row); });
        const std::size_t at = row * c.columns + i;
        ASSERT_NEAR(dz[at], slope, bound * (1.0 + std::fabs(slope))) << c.name() << " dz " << at;
        if (!c.residual_form) continue;
        const double dropped = slope * twin.factor(row, i);
        ASSERT_NEAR(dx[at], dropped, bound * (1.0 + std::fabs(dropped))) << c.name() << " dx " << at;
      }
    }
    const double of_sums = (4.0 * rounding<T> + 1e-6) * std::sqrt(static_cast<double>(c.rows)) * steepness(c.columns);
    expect_near(host_values(device.dweight), dweight, of_sums, c.name() + " dweight");
    expect_near(host_values(device.dshift), dshift, of_sums, c.name() + " dshift");
    if (c.residual_form) expect_near(host_values(device.dbias), dbias, of_sums, c.name() + " dbias");
  }
}

MYLOS_TEST_OF_ELEMENTS(LayerNorm, GivesTheSameBitsOnOneThread) {
  for (const bool residual_form : {true, false}) {
    const Twin twin = Twin::random<T>(333, 100, 0.1f, residual_form);
    Device<T> all(twin), one(twin);
    all.forward(twin);
    all.backward(twin);
    one.forward(twin, one_thread());
    one.backward(twin, one_thread());
    EXPECT_TRUE(same_bits(all.y, one.y));
    EXPECT_TRUE(same_bits(all.dz, one.dz));
    EXPECT_TRUE(same_bits(all.dx, one.dx));
    EXPECT_TRUE(same_bits(all.dweight, one.dweight));
    EXPECT_TRUE(same_bits(all.dshift, one.dshift));
    EXPECT_TRUE(same_bits(all.dbias, one.dbias));
  }
}

MYLOS_TEST_OF_ELEMENTS(LayerNorm, GradientsMayBeWrittenOverWhatTheyComeFrom) {
  for (const std::size_t columns : {60u, 64u}) {
    const Twin plain = Twin::random<T>(40, columns, 0.1f, false), off = Twin::random<T>(40, columns, 0.0f, true);
    Device<T> apart(plain), in_place(plain);
    in_place.dz = in_place.dy;
    for (Device<T>* device : {&apart, &in_place}) {
      device->forward(plain);
      device->backward(plain);
    }
    EXPECT_TRUE(same_bits(apart.dz, in_place.dz));
    Device<T> two(off), shared(off);
    shared.dx = shared.dz;
    for (Device<T>* device : {&two, &shared}) {
      device->forward(off);
      device->backward(off);
    }
    EXPECT_TRUE(same_bits(two.dz, shared.dx));
  }
}

TEST(LayerNormErrors, ShowBothSides) {
  const Twin twin = Twin::random<float>(4, 6, 0.0f, true);
  Device<float> short_weight(twin), short_mean(twin), short_workspace(twin);
  short_weight.parameters.weight = device_vector<float>(Values(5));
  EXPECT_THAT(error_of([&] { short_weight.forward(twin); }), HasSubstr("LayerNorm of 6 columns: weight has 5, bias 6"));
  short_mean.saved.mean = Vector<float>("test::mean", 3);
  EXPECT_THAT(error_of([&] { short_mean.backward(twin); }),
              HasSubstr("LayerNorm of 4 x 6: saved are 4 x 6, 3 means, 4 inverses"));
  short_workspace.workspace = Vector<float>("test::workspace", 17);
  EXPECT_THAT(error_of([&] { short_workspace.backward(twin); }),
              HasSubstr("column sums of 4 x 6: the workspace has 17 floats, 18 are needed"));
}

}  // namespace
}  // namespace mylos
