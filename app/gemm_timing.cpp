#include "app/gemm_timing.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

namespace mylos::app {
namespace {

constexpr std::size_t checked_elements = 64;
constexpr std::size_t warm_ups = 2;

/// Reproducible values in [-1, 1).
template <class T>
HostVector<T> random_values(std::size_t count, unsigned seed) {
  HostVector<T> values("mylos::bench::values", count);
  std::minstd_rand generator(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  for (std::size_t i = 0; i < count; ++i) values(i) = T(uniform(generator));
  return values;
}

/// One product with its operands in memory.
template <class In, class Out>
class ProductRun {
 public:
  explicit ProductRun(const Product& product)
      : product_(product),
        host_a_(random_values<In>(product.m * product.k, 1)),
        host_b_(random_values<In>(product.k * product.n, 2)),
        a_("mylos::bench::a", host_a_.size()),
        b_("mylos::bench::b", host_b_.size()),
        c_("mylos::bench::c", product.m * product.n) {
    Kokkos::deep_copy(a_, host_a_);
    Kokkos::deep_copy(b_, host_b_);
  }

  void multiply(const Gemm& gemm) {
    const bool ta = product_.transpose_a == Transpose::yes, tb = product_.transpose_b == Transpose::yes;
    gemm.operator()<In, Out>(
        space_, product_.transpose_a, as_matrix<In>(a_, ta ? product_.k : product_.m, ta ? product_.m : product_.k),
        product_.transpose_b, as_matrix<In>(b_, tb ? product_.n : product_.k, tb ? product_.k : product_.n), 0.0f,
        as_matrix<Out>(c_, product_.m, product_.n));
    space_.fence("mylos::bench::multiply");
  }

  void check(std::string_view provider) const {
    const auto c = Kokkos::create_mirror_view_and_copy(HostSpace(), c_);
    // A rounding of the output, and the sum's own: far below what one wrong term of order 1 makes.
    const double rounding = sizeof(Out) == 2 ? 1.0 / 128 : 1e-6;
    std::minstd_rand generator(3);
    for (std::size_t i = 0; i < checked_elements; ++i) {
      const std::size_t row = generator() % product_.m, column = generator() % product_.n;
      const double expected = element(row, column), actual = static_cast<float>(c(row * product_.n + column));
      if (std::abs(actual - expected) <= rounding * std::abs(expected) + 1e-5 * std::sqrt(product_.k)) continue;
      fail(fmt::format("{} by {}: element ({}, {}) is {}, and should be {}", product_.name, provider, row, column,
                       actual, expected));
    }
  }

 private:
  double element(std::size_t row, std::size_t column) const {
    const bool ta = product_.transpose_a == Transpose::yes, tb = product_.transpose_b == Transpose::yes;
    double sum = 0.0;
    for (std::size_t i = 0; i < product_.k; ++i) {
      const float a = host_a_(ta ? i * product_.m + row : row * product_.k + i);
      const float b = host_b_(tb ? column * product_.k + i : i * product_.n + column);
      sum += static_cast<double>(a) * static_cast<double>(b);
    }
    return sum;
  }

  Product product_;
  ExecutionSpace space_;
  HostVector<In> host_a_, host_b_;
  Vector<In> a_, b_;
  Vector<Out> c_;
};

template <class In, class Out>
double time_typed(const Gemm& gemm, const Product& product, std::size_t repeats) {
  using Clock = std::chrono::steady_clock;
  ProductRun<In, Out> run(product);
  for (std::size_t i = 0; i < warm_ups; ++i) run.multiply(gemm);
  run.check(gemm.provider());
  std::vector<double> seconds;
  for (std::size_t i = 0; i < repeats; ++i) {
    const Clock::time_point begin = Clock::now();
    run.multiply(gemm);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return median(std::move(seconds));
}

}  // namespace

std::vector<Product> layer_products(std::size_t tokens, std::size_t hidden, std::size_t feed_forward) {
  struct Linear {
    const char* name;
    std::size_t out, in;
  };
  std::vector<Product> products;
  for (const Linear& linear : {Linear{"qkv", 3 * hidden, hidden}, Linear{"attention-output", hidden, hidden},
                               Linear{"intermediate", feed_forward, hidden}, Linear{"output", hidden, feed_forward}}) {
    const std::string name = linear.name;
    products.push_back({name + "/forward", Transpose::no, Transpose::yes, tokens, linear.out, linear.in});
    products.push_back({name + "/input-gradient", Transpose::no, Transpose::no, tokens, linear.in, linear.out});
    products.push_back({name + "/weight-gradient", Transpose::yes, Transpose::no, linear.out, linear.in, tokens, true});
  }
  return products;
}

double time_product(const std::string& provider, const Product& product, Precision precision, std::size_t repeats) {
  const Gemm gemm(provider);
  if (precision == Precision::float32) return time_typed<float, float>(gemm, product, repeats);
  require(precision == Precision::bfloat16, "bench: products are timed in float and bfloat16");
  if (product.is_weight_gradient) return time_typed<bfloat16, float>(gemm, product, repeats);
  return time_typed<bfloat16, bfloat16>(gemm, product, repeats);
}

double layer_rate(const std::string& provider, const std::vector<Product>& products, Precision precision,
                  std::size_t repeats) {
  double flops = 0.0, seconds = 0.0;
  for (const Product& product : products) {
    flops += product.flops();
    seconds += time_product(provider, product, precision, repeats);
  }
  return flops / seconds;
}

double median(std::vector<double> values) {
  require(!values.empty(), "median: no values");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace mylos::app
