#include "app/build_info.hpp"
#include "app/gemm_timing.hpp"
#include "app/median.hpp"
#include "core/error.hpp"
#include "core/kernels/attention.hpp"
#include "core/kernels/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

/// Attention's forward and backward pass on the shapes of two models, beside a matrix product of 1024 x 1024 x 1024 by
/// the portable provider in the same minute: the ratio says more than a rate on a shared machine. Checked, then timed.
namespace mylos {
namespace {

struct Shape {
  std::string name;
  std::size_t heads, head_size;
  std::vector<std::size_t> lengths;
};

const std::vector<Shape> shapes = {{"minilm", 12, 32, {170, 150, 190, 165, 180, 160, 175, 170}},
                                   {"bert-base", 12, 64, {40, 80, 120, 160, 200, 256, 320, 384}}};

template <class Function>
double seconds(const Function& function) {
  std::vector<double> times;
  for (int repeat = 0; repeat < 12; ++repeat) {
    const Kokkos::Timer timer;
    function();
    Kokkos::fence("mylos::Bench::wait");
    times.push_back(timer.seconds());
  }
  return app::median(times);
}

/// Floating-point operations a second of the portable provider.
double product_rate() {
  app::Product product{.name = "square"};
  product.m = product.n = product.k = 1024;
  app::ProductRates rates;
  app::ProductTimer({gemm_providers().front()}).time(product, 7, rates);
  return rates.rate(0);
}

template <class T>
struct Problem {
  AttentionShape shape;
  DropoutKey dropout;
  PackedSequences sequences;
  Matrix<T> qkv, out, dout, dqkv;
  Matrix<float> log_sum_exp, row_sums;
  double squares = 0.0;  ///< sum of length^2 over sequences

  Problem(const Shape& of, float probability)
      : shape{of.heads, of.heads, of.head_size, 1.0f / std::sqrt(static_cast<float>(of.head_size)), false},
        dropout{.seed = 1, .step = 2, .site = 3, .probability = probability} {
    std::vector<std::size_t> starts{0};
    for (const std::size_t length : of.lengths) {
      starts.push_back(starts.back() + length);
      squares += static_cast<double>(length * length);
    }
    const std::size_t rows = starts.back();
    const Vector<std::size_t> device_starts("mylos::Bench::starts", starts.size());
    Kokkos::deep_copy(device_starts, HostVector<std::size_t>(starts.data(), starts.size()));
    sequences = {device_starts, Vector<std::uint32_t>("mylos::Bench::ids", of.lengths.size()),
                 *std::max_element(of.lengths.begin(), of.lengths.end())};
    qkv = random(rows, shape.columns(), 1);
    dqkv = random(rows, shape.columns(), 2);
    out = random(rows, shape.heads * shape.head_size, 3);
    dout = random(rows, shape.heads * shape.head_size, 4);
    log_sum_exp = Matrix<float>("mylos::Bench::log_sum_exp", shape.heads, rows);
    row_sums = Matrix<float>("mylos::Bench::row_sums", shape.heads, rows);
  }

  static Matrix<T> random(std::size_t rows, std::size_t columns, std::uint64_t stream) {
    const Matrix<T> matrix("mylos::Bench::values", rows, columns);
    const auto host = Kokkos::create_mirror_view(matrix);
    for (std::size_t i = 0; i < host.size(); ++i) host.data()[i] = T(static_cast<float>(normal(7, stream, i)));
    Kokkos::deep_copy(matrix, host);
    return matrix;
  }

  void forward() const { attention_forward<T>(ExecutionSpace(), shape, sequences, dropout, qkv, out, log_sum_exp); }
  void backward() const {
    attention_backward<T>(ExecutionSpace(), shape, sequences, dropout, qkv, out, log_sum_exp, dout, dqkv, row_sums);
  }
};

/// Sum of a * b over the columns [begin, end) of a and those from `other` on of b.
template <class T>
double inner(const Matrix<T>& a, std::size_t begin, std::size_t end, const Matrix<T>& b, std::size_t other) {
  const auto x = Kokkos::create_mirror_view_and_copy(HostSpace(), a);
  const auto y = Kokkos::create_mirror_view_and_copy(HostSpace(), b);
  double sum = 0.0;
  for (std::size_t row = 0; row < x.extent(0); ++row) {
    for (std::size_t c = begin; c < end; ++c) {
      sum += static_cast<double>(static_cast<float>(x(row, c))) * static_cast<float>(y(row, other + c - begin));
    }
  }
  return sum;
}

/// The output is linear in the values, and the scores are bilinear in queries and keys: hence two equal pairs of sums.
template <class T>
void check(const Problem<T>& problem) {
  problem.forward();
  problem.backward();
  Kokkos::fence("mylos::Bench::wait");
  const std::size_t width = problem.shape.heads * problem.shape.head_size;
  const double by_values = inner(problem.dqkv, 2 * width, 3 * width, problem.qkv, 2 * width);
  const double by_output = inner(problem.dout, 0, width, problem.out, 0);
  const double by_queries = inner(problem.dqkv, 0, width, problem.qkv, 0);
  const double by_keys = inner(problem.dqkv, width, 2 * width, problem.qkv, width);
  const double size = std::sqrt(inner(problem.out, 0, width, problem.out, 0));
  const double tolerance = (precision_of<T> == Precision::float32 ? 1e-4 : 5e-2) * size;
  ensure(std::fabs(by_values - by_output) < tolerance && std::fabs(by_queries - by_keys) < tolerance,
         fmt::format("attention: sums {} and {}, {} and {} should be equal pairs", by_values, by_output, by_queries,
                     by_keys));
}

template <class T>
void measure(const Shape& of, float probability) {
  const Problem<T> problem(of, probability);
  check(problem);
  const double flops = 4.0 * problem.squares * static_cast<double>(of.heads * of.head_size);
  const double forward = seconds([&] { problem.forward(); }), backward = seconds([&] { problem.backward(); });
  const double rate = product_rate();
  fmt::print("{}/{}/dropout={}: forward {:.2f} ms, {:.0f} GFLOP/s, {:.2f} of the product's {:.0f}; ", of.name,
             to_string(precision_of<T>), probability, 1e3 * forward, 1e-9 * flops / forward, flops / forward / rate,
             1e-9 * rate);
  fmt::print("backward {:.2f} ms, {:.0f} GFLOP/s, {:.2f}\n", 1e3 * backward, 2.5e-9 * flops / backward,
             2.5 * flops / backward / rate);
}

}  // namespace
}  // namespace mylos

int main() {
  const Kokkos::ScopeGuard kokkos;
  const auto build = mylos::app::build_info();
  fmt::print("{} x {}, {}, commit {}\n", mylos::ExecutionSpace::name(), mylos::ExecutionSpace().concurrency(),
             build.build_type, build.commit);
  for (const mylos::Shape& shape : mylos::shapes) {
    for (const float probability : {0.0f, 0.1f}) {
      mylos::measure<float>(shape, probability);
      mylos::measure<mylos::bfloat16>(shape, probability);
    }
  }
}
