#include "nn/layers/linear.hpp"

#include "core/kernels/norms/layer_norm.hpp"
#include "tests/support/engine.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace mylos::nn {
namespace {

using namespace tests;

constexpr std::size_t rows = 7, in = 13, out = 5, stack = 3;

ParameterTable make_table() {
  ParameterTable::Builder builder;
  builder.unit("other");
  add_linear_tensors(builder, "elsewhere", 3, 4, {Initializer::Kind::normal, 0.1f});
  builder.unit("layer");
  for (const char* name : {"query", "key", "value", "single"}) {
    add_linear_tensors(builder, name, in, out, {Initializer::Kind::normal, 0.5f});
  }
  return builder.build();
}

/// A linear layer with its double-precision reference; `stacked` layers in one.
template <class T>
struct Setting {
  Setting(const std::string& provider, std::size_t stacked)
      : table(make_table()),
        engine(table, precision_of<T>, 1 << 20, provider),
        linear(stacked > 1 ? find_linear(table, "query", stacked) : find_linear(table, "single")),
        columns(out * stacked),
        x(random_values<T>(rows * in, 1)),
        dy(random_values<T>(rows * columns, 2)) {
    for (std::size_t i = 0; i < stacked; ++i) {
      const Values w = engine.values(linear.weight + i), b = engine.values(linear.bias + i);
      weight.insert(weight.end(), w.begin(), w.end());
      bias.insert(bias.end(), b.begin(), b.end());
    }
  }
  Matrix<T> device_x() const { return device_matrix<T>(x, rows, in); }
  Matrix<T> device_dy() const { return device_matrix<T>(dy, rows, columns); }
  Values product(bool with_bias) const {
    Values y(rows * columns);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        y[r * columns + c] = with_bias ? bias[c] : 0.0;
        for (std::size_t k = 0; k < in; ++k) y[r * columns + c] += x[r * in + k] * weight[c * in + k];
      }
    }
    return y;
  }
  Values input_gradient() const {
    Values dx(rows * in, 0.0);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t k = 0; k < in; ++k) dx[r * in + k] += dy[r * columns + c] * weight[c * in + k];
      }
    }
    return dx;
  }
  Values weight_gradient() const {
    Values dw(columns * in, 0.0);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t k = 0; k < in; ++k) dw[c * in + k] += dy[r * columns + c] * x[r * in + k];
      }
    }
    return dw;
  }

  ParameterTable table;
  Engine engine;
  Linear linear;
  std::size_t columns;
  Values x, dy, weight, bias;
};

template <class T>
constexpr double tolerance = 8.0 * rounding<T>;

template <class T, class Check>
void for_each_setting(const Check& check) {
  for (const std::string& provider : exact_gemm_providers()) {
    for (const std::size_t stacked : {std::size_t{1}, stack}) {
      SCOPED_TRACE(fmt::format("{}, {} stacked", provider, stacked));
      Setting<T> setting(provider, stacked);
      check(setting);
    }
  }
}

MYLOS_TEST_OF_TYPES(LinearLayer, ForwardIsTheProductWithOrWithoutBias, float, bfloat16) {
  for_each_setting<T>([](Setting<T>& s) {
    const Matrix<T> y("test::y", rows, s.columns);
    linear_forward<T>(s.engine.pass(), s.linear, s.device_x(), y);
    expect_near(host_values(y), s.product(true), tolerance<T>, "with bias");
    linear_without_bias<T>(s.engine.pass(), s.linear, s.device_x(), y);
    expect_near(host_values(y), s.product(false), tolerance<T>, "without");
  });
}

MYLOS_TEST_OF_TYPES(LinearLayer, GradientsAreAddedUp, float, bfloat16) {
  for_each_setting<T>([](Setting<T>& s) {
    const Vector<float> workspace("test::workspace", column_sum_workspace(rows, s.columns));
    for (int pass = 0; pass < 2; ++pass) {
      linear_gradients<T>(s.engine.pass(), s.linear, s.device_x(), s.device_dy(), workspace);
    }
    Values dw = s.weight_gradient(), db(s.columns, 0.0);
    for (double& value : dw) value *= 2.0;
    for (std::size_t i = 0; i < s.dy.size(); ++i) db[i % s.columns] += 2.0 * s.dy[i];
    // Gradients are float in every precision.
    expect_near(host_values(s.engine.store.stacked_gradient(s.linear.weight, s.linear.stacked)), dw, 1e-6, "dW");
    expect_near(host_values(s.engine.store.stacked_gradient(s.linear.bias, s.linear.stacked)), db, 1e-6, "db");
    expect_near(s.engine.gradient(s.table.find("elsewhere.weight")), Values(12, 0.0), 0.0, "another row");
  });
}

MYLOS_TEST_OF_TYPES(LinearLayer, EveryStepsWeightGradientCountsFromZero, float, bfloat16) {
  for_each_setting<T>([](Setting<T>& s) {
    Values twice = s.weight_gradient();
    for (double& value : twice) value *= 2.0;
    for (int step = 0; step < 3; ++step) {
      s.engine.strategy->begin_step(s.engine.space);
      for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
        linear_weight_gradient<T>(s.engine.pass(), s.linear, s.device_x(), s.device_dy());
      }
      s.engine.strategy->finish_gradients();
      expect_near(host_values(s.engine.store.stacked_gradient(s.linear.weight, s.linear.stacked)), twice, 1e-6,
                  fmt::format("dW of step {}", step));
    }
  });
}

MYLOS_TEST_OF_TYPES(LinearLayer, InputGradientReplacesOrAdds, float, bfloat16) {
  for_each_setting<T>([](Setting<T>& s) {
    const Values before = random_values<T>(rows * in, 3);
    const Matrix<T> dx = device_matrix<T>(before, rows, in);
    linear_input_gradient<T>(s.engine.pass(), s.linear, s.device_dy(), 1.0f, dx);
    Values expected = s.input_gradient();
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += before[i];
    expect_near(host_values(dx), expected, tolerance<T>, "added");
    linear_input_gradient<T>(s.engine.pass(), s.linear, s.device_dy(), 0.0f, dx);
    expect_near(host_values(dx), s.input_gradient(), tolerance<T>, "replaced");
  });
}

MYLOS_TEST_OF_TYPES(LinearLayer, GeluFollowsTheBias, float, bfloat16) {
  for (const std::string& provider : exact_gemm_providers()) {
    Setting<T> s(provider, 1);
    const Matrix<T> y("test::y", rows, out), pre("test::pre", rows, out);
    linear_gelu_forward<T>(s.engine.pass(), s.linear, s.device_x(), pre, y);
    Values expected = s.product(true);
    expect_near(host_values(pre), expected, tolerance<T>, provider + " pre");
    for (double& value : expected) value *= 0.5 * (1.0 + std::erf(value / std::sqrt(2.0)));
    expect_near(host_values(y), expected, tolerance<T>, provider + " gelu");
  }
}

}  // namespace
}  // namespace mylos::nn
