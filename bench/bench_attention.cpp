#include "app/bench/bench.hpp"
#include "app/bench/gemm_timing.hpp"
#include "bench/bench_program.hpp"
#include "core/base/error.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "core/element_type.hpp"
#include "core/kernels/attention/attention.hpp"
#include "core/kernels/attention/attention_work.hpp"
#include "core/kernels/products/gemm.hpp"
#include "core/kernels/products/openblas_kernels.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

/// bench_attention [--lengths N,N,...] [--heads A] [--key-value-heads KV] [--head-size D] [--mask full|causal]
/// [--window W] [--precision P,P] [--dropout X,X] [--repeats N] [--kernel K,K] [--json]: validates and times the
/// forward and backward pass of attention, by default on the shapes of two models. It also times a matrix product of
/// 1024 x 1024 x 1024 with the portable provider within the same minute, because on a shared machine the ratio is more
/// meaningful than a rate.
namespace mylos::bench {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Shape {
  std::string name;
  std::size_t heads, key_value_heads, head_size;
  std::vector<std::size_t> lengths;
  bool causal = false;
  int window = no_window;
};

const std::vector<Shape> model_shapes = {{"minilm", 12, 12, 32, {170, 150, 190, 165, 180, 160, 175, 170}},
                                         {"bert-base", 12, 12, 64, {40, 80, 120, 160, 200, 256, 320, 384}}};

/// Returns the floating-point operations per second of the portable provider.
double product_rate() {
  GemmProduct product{.name = "square"};
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
  Matrix<float> log_sum_exp, row_sums, partial_sums;
  double pairs = 0.0;  ///< pairs of a query and a key that it attends to

  Problem(const Shape& of, AttentionKernel kernel, float probability)
      : shape{of.heads,  of.key_value_heads, of.head_size, 1.0f / std::sqrt(static_cast<float>(of.head_size)),
              of.causal, of.window,          kernel},
        dropout{.seed = 1, .step = 2, .site = 3, .probability = probability} {
    std::vector<std::size_t> starts{0};
    for (const std::size_t length : of.lengths) {
      starts.push_back(starts.back() + length);
      pairs += static_cast<double>(length) * attention::mean_visible_keys(shape, static_cast<double>(length));
    }
    const std::size_t rows = starts.back();
    const Vector<std::size_t> device_starts("mylos::bench::starts", starts.size());
    Kokkos::deep_copy(device_starts, HostVector<std::size_t>(starts.data(), starts.size()));
    sequences = {device_starts, Vector<std::uint32_t>("mylos::bench::ids", of.lengths.size()),
                 *std::max_element(of.lengths.begin(), of.lengths.end())};
    qkv = random(rows, shape.columns(), 1);
    dqkv = unwritten(rows, shape.columns());
    out = unwritten(rows, shape.heads * shape.head_size);
    dout = random(rows, shape.heads * shape.head_size, 2);
    if (precision_of<T> != Precision::float32) {
      partial_sums = Matrix<float>("mylos::bench::partial_sums", rows, shape.columns());
    }
    log_sum_exp = Matrix<float>("mylos::bench::log_sum_exp", shape.heads, rows);
    row_sums = Matrix<float>("mylos::bench::row_sums", shape.heads, rows);
  }

  static Matrix<T> repeated(const std::vector<T>& values, std::size_t rows, std::size_t columns) {
    const Matrix<T> matrix("mylos::bench::values", rows, columns);
    const auto host = Kokkos::create_mirror_view(matrix);
    for (std::size_t i = 0; i < host.size(); ++i) host.data()[i] = values[i % values.size()];
    Kokkos::deep_copy(matrix, host);
    return matrix;
  }
  /// Normally distributed. Values repeat, because drawing every one would take longer than the timed kernels.
  static Matrix<T> random(std::size_t rows, std::size_t columns, std::uint64_t stream) {
    constexpr std::size_t period = 65521;  // a prime, so that rows differ for all widths below it
    std::vector<T> values;
    for (std::size_t i = 0; i < period; ++i) values.push_back(T(static_cast<float>(normal(7, stream, i))));
    return repeated(values, rows, columns);
  }
  /// Filled with NaNs, which no check accepts.
  static Matrix<T> unwritten(std::size_t rows, std::size_t columns) {
    return repeated(std::vector<T>(1, T(std::numeric_limits<float>::quiet_NaN())), rows, columns);
  }

  void forward() const { attention_forward<T>(ExecutionSpace(), shape, sequences, dropout, qkv, out, log_sum_exp); }
  void backward() const {
    attention_backward<T>(ExecutionSpace(), shape, sequences, dropout, qkv, out, log_sum_exp, dout, dqkv, row_sums,
                          partial_sums);
  }
};

/// Returns the sum of a * b over the columns [begin, end) of a and the columns of b from `other` on.
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

/// Compares two pairs of sums, which are equal because the output is linear in the values, and the scores are bilinear
/// in queries and keys.
template <class T>
void check(const Problem<T>& problem) {
  problem.forward();
  problem.backward();
  Kokkos::fence("mylos::bench::wait");
  const std::size_t width = problem.shape.heads * problem.shape.head_size;
  const std::size_t values = width + problem.shape.key_value_heads * problem.shape.head_size;
  const double by_values = inner(problem.dqkv, values, problem.shape.columns(), problem.qkv, values);
  const double by_output = inner(problem.dout, 0, width, problem.out, 0);
  const double by_queries = inner(problem.dqkv, 0, width, problem.qkv, 0);
  const double by_keys = inner(problem.dqkv, width, values, problem.qkv, width);
  const double size = std::sqrt(inner(problem.out, 0, width, problem.out, 0));
  const double tolerance = (precision_of<T> == Precision::float32 ? 1e-4 : 5e-2) * size;
  ensure(std::fabs(by_values - by_output) < tolerance && std::fabs(by_queries - by_keys) < tolerance,
         fmt::format("attention: sums {} and {}, {} and {} should be equal pairs", by_values, by_output, by_queries,
                     by_keys));
}

/// The measurements of one shape.
struct Case {
  AttentionKernel kernel = AttentionKernel::portable;
  Precision precision = Precision::float32;
  float dropout = 0.0f;
};

/// Counts the minimum number of matrix products per pass: two forward, five backward.
OrderedJson pass_row(double seconds, double products, const Shape& shape, double pairs) {
  const double flops = 2.0 * products * pairs * static_cast<double>(shape.heads * shape.head_size);
  return {{"seconds", seconds}, {"gflops", 1e-9 * flops / seconds}};
}

template <class T>
OrderedJson measure(const Shape& shape, const Case& of, std::size_t repeats) {
  const Problem<T> problem(shape, of.kernel, of.dropout);
  check(problem);
  const double forward = seconds_of(repeats, [&] { problem.forward(); });
  const double backward = seconds_of(repeats, [&] { problem.backward(); });
  const OrderedJson window = shape.window == no_window ? OrderedJson() : OrderedJson(shape.window);
  return {{"shape", shape.name},
          {"kernel", to_string(of.kernel)},
          {"precision", to_string(of.precision)},
          {"dropout", of.dropout},
          {"mask", shape.causal ? "causal" : "full"},
          {"window", window},
          {"heads", shape.heads},
          {"key_value_heads", shape.key_value_heads},
          {"head_size", shape.head_size},
          {"lengths", shape.lengths},
          {"forward", pass_row(forward, 2.0, shape, problem.pairs)},
          {"backward", pass_row(backward, 5.0, shape, problem.pairs)},
          {"product_gflops", 1e-9 * product_rate()}};
}

void print_row(const OrderedJson& row) {
  std::string line =
      fmt::format("{}/{}/{}/dropout={:.2g}: ", row["shape"].get<std::string>(), row["kernel"].get<std::string>(),
                  row["precision"].get<std::string>(), row["dropout"].get<double>());
  const auto product = row["product_gflops"].get<double>();
  for (const char* pass : {"forward", "backward"}) {
    const double rate = row[pass]["gflops"];
    line += fmt::format("{} {:.4g} ms, {:.0f} GFLOP/s, {:.2f} of the product's {:.0f}; ", pass,
                        1e3 * row[pass]["seconds"].get<double>(), rate, rate / product, product);
  }
  print(line.substr(0, line.size() - 2) + "\n");
}

std::vector<Shape> shapes_of(const Options& options) {
  const std::string mask = options.text("mask", "full");
  if (mask != "full" && mask != "causal") throw UsageError(fmt::format("--mask {}: expected full or causal", mask));
  std::vector<Shape> shapes = model_shapes;
  if (options.has("lengths") || options.has("heads") || options.has("head-size") || options.has("key-value-heads")) {
    const std::size_t heads = options.count("heads", 12), key_value_heads = options.count("key-value-heads", heads);
    if (heads % key_value_heads != 0) {
      throw UsageError(fmt::format("--key-value-heads {}: expected a divisor of --heads {}", key_value_heads, heads));
    }
    shapes = {{"given", heads, key_value_heads, options.count("head-size", 64),
               options.counts("lengths", model_shapes.back().lengths)}};
  }
  const std::size_t window = options.count("window", no_window);
  if (options.has("window") && mask != "causal") throw UsageError("--window: needs --mask causal");
  for (Shape& shape : shapes) {
    shape.causal = mask == "causal";
    shape.window = static_cast<int>(std::min<std::size_t>(window, no_window));
  }
  return shapes;
}

/// Returns the named kernels, or all that can be run for this precision, head size and dropout on `device`, which is
/// none if it is not known yet. Errors: UsageError.
std::vector<AttentionKernel> kernels_of(const Options& options, Precision precision, std::size_t head_size,
                                        float dropout, const GpuArchitecture& device) {
  std::vector<std::string> names;
  for (const AttentionKernel kernel : attention_kernels) names.emplace_back(to_string(kernel));
  const std::vector<std::string> named = options.names("kernel", names);
  std::vector<AttentionKernel> kernels;
  for (const AttentionKernel kernel : attention_kernels) {
    if (std::ranges::find(named, to_string(kernel)) == named.end()) continue;
    const bool lacks_dropout = dropout > 0.0f && !has_dropout(kernel);
    const std::string obstacle =
        lacks_dropout ? "it has no dropout" : attention_obstacle(kernel, precision, head_size, device);
    if (obstacle.empty()) kernels.push_back(kernel);
    if (obstacle.empty() || !options.has("kernel")) continue;
    throw UsageError(fmt::format("--kernel {}: {}; {}", to_string(kernel), obstacle,
                                 lacks_dropout ? "use --dropout 0" : "leave it out"));
  }
  return kernels;
}

std::vector<Case> cases_of(const Options& options, const Shape& shape, const GpuArchitecture& device = {}) {
  std::vector<Case> cases;
  for (const float dropout : options.probabilities("dropout", {0.0f, 0.1f})) {
    for (const Precision precision : options.precisions({Precision::float32, Precision::bfloat16})) {
      for (const AttentionKernel kernel : kernels_of(options, precision, shape.head_size, dropout, device)) {
        cases.push_back({kernel, precision, dropout});
      }
    }
  }
  return cases;
}

void run(int argc, char** argv) {
  const Options options(argc, argv,
                        {"lengths", "heads", "key-value-heads", "head-size", "mask", "window", "precision", "dropout",
                         "kernel", "repeats"});
  const std::vector<Shape> measured = shapes_of(options);
  const std::size_t repeats = options.count("repeats", 11);
  for (const Shape& shape : measured) cases_of(options, shape);  // report unsupported shapes before timing
  const app::ComputeScope compute;
  if (!options.json()) app::print_bench_context();
  OrderedJson rows = OrderedJson::array();
  for (const Shape& shape : measured) {
    for (const Case& one : cases_of(options, shape, architecture_in_use())) {
      app::check_precision(one.precision, false);
      rows.push_back(with_type(one.precision, [&]<class T>(T) { return measure<T>(shape, one, repeats); }));
      if (!options.json()) print_row(rows.back());
    }
  }
  if (options.json()) print(OrderedJson{{"context", app::bench_context()}, {"attention", rows}}.dump(2) + "\n");
}

}  // namespace
}  // namespace mylos::bench

int main(int argc, char** argv) {
  mylos::restart_with_openblas_kernels(argv);
  return mylos::bench::run_program("bench_attention", [&] { mylos::bench::run(argc, argv); });
}
