#include "app/bench/gemm_timing.hpp"

#include "core/base/error.hpp"
#include "core/base/median.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

namespace mylos::app {
namespace {

constexpr std::size_t checked_elements = 64;

/// `count` reproducible values in [-1, 1).
void fill(std::vector<float>& values, std::size_t count, unsigned seed) {
  if (values.size() >= count) return;
  values.resize(count);
  std::minstd_rand generator(seed);
  for (float& value : values) value = static_cast<float>(generator() >> 7) / 8388608.0f - 1.0f;
}

template <class T>
Vector<T> upload(const std::vector<float>& values, std::size_t count) {
  const HostVector<T> host("mylos::bench::values", count);
  for (std::size_t i = 0; i < count; ++i) host(i) = T(values[i]);
  const Vector<T> device = uninitialized<T>("mylos::bench::operand", count);
  Kokkos::deep_copy(device, host);
  return device;
}

bool is_exact(std::string_view provider) {
  const std::vector<std::string> exact = exact_gemm_providers();
  return std::ranges::find(exact, provider) != exact.end();
}

/// One product with its operands in memory.
template <class In, class Out>
class ProductRun {
 public:
  ProductRun(const GemmProduct& product, const std::vector<float>& a, const std::vector<float>& b)
      : product_(product),
        values_a_(a),
        values_b_(b),
        a_(upload<In>(a, product.m * product.k)),
        b_(upload<In>(b, product.k * product.n)),
        c_("mylos::bench::result", product.m * product.n) {}

  void multiply(const Gemm& gemm) const {
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
    const double rounding = sizeof(Out) == 2 ? 1.0 / 128 : 1e-6, of_terms = is_exact(provider) ? 1e-5 : 1e-3;
    std::minstd_rand generator(3);
    for (std::size_t i = 0; i < checked_elements; ++i) {
      const std::size_t row = generator() % product_.m, column = generator() % product_.n;
      const double expected = element(row, column), actual = static_cast<float>(c(row * product_.n + column));
      if (std::abs(actual - expected) <= rounding * std::abs(expected) + of_terms * std::sqrt(product_.k)) continue;
      fail(fmt::format("{} by {}: element ({}, {}) is {}, and should be {}", product_.name, provider, row, column,
                       actual, expected));
    }
  }

 private:
  double element(std::size_t row, std::size_t column) const {
    const bool ta = product_.transpose_a == Transpose::yes, tb = product_.transpose_b == Transpose::yes;
    double sum = 0.0;
    for (std::size_t i = 0; i < product_.k; ++i) {
      const float a = In(values_a_[ta ? i * product_.m + row : row * product_.k + i]);
      const float b = In(values_b_[tb ? column * product_.k + i : i * product_.n + column]);
      sum += static_cast<double>(a) * static_cast<double>(b);
    }
    return sum;
  }

  GemmProduct product_;
  ExecutionSpace space_;
  const std::vector<float>&values_a_, &values_b_;
  Vector<In> a_, b_;
  Vector<Out> c_;
};

template <class In, class Out>
void time_typed(const std::vector<std::unique_ptr<Gemm>>& gemms, const ProductRun<In, Out>& run, std::size_t repeats,
                ProductRates& rates) {
  using Clock = std::chrono::steady_clock;
  for (const auto& gemm : gemms) {
    run.multiply(*gemm);
    run.check(gemm->provider());
  }
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t provider = 0; provider < gemms.size(); ++provider) {
      const Clock::time_point begin = Clock::now();
      run.multiply(*gemms[provider]);
      const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      rates.rates[provider].push_back(rates.product.flops() / seconds);
    }
  }
}

/// f(In(), Out()) for the element types of a product; products write float or the operands' type.
template <class F>
void with_types(const GemmProduct& product, const F& f) {
  const bool is_float = product.output == Precision::float32;
  if (product.input == Precision::float32) return f(float(), float());
  if (product.input == Precision::bfloat16) return is_float ? f(bfloat16(), float()) : f(bfloat16(), bfloat16());
  return is_float ? f(half(), float()) : f(half(), half());
}

}  // namespace

std::vector<GemmProduct> training_products(const nn::Model& model, std::size_t rows) {
  return model.products({.samples = 1, .rows = rows, .longest = rows}, ParameterStore::Purpose::training);
}

std::string product_name(std::span<const GemmProduct> products, const GemmLabel& label) {
  const auto same = [&](const GemmProduct& product) {
    const bool rows_are_summed = product.transpose_a == Transpose::yes;
    return product.transpose_a == label.transpose_a && product.transpose_b == label.transpose_b &&
           product.n == label.n && (rows_are_summed ? product.m == label.m : product.k == label.k);
  };
  const auto found = std::ranges::find_if(products, same);
  return found != products.end() ? found->name : fmt::format("{} x {} x {}", label.m, label.n, label.k);
}

double ProductRates::rate(std::size_t provider) const { return median(rates[provider]); }

std::size_t ProductRates::fastest() const {
  std::size_t best = 0;
  for (std::size_t provider = 1; provider < rates.size(); ++provider) {
    if (rate(provider) > rate(best)) best = provider;
  }
  return best;
}

ProductTimer::ProductTimer(std::vector<std::string> providers) : providers_(std::move(providers)) {
  for (const std::string& provider : providers_) gemms_.push_back(std::make_unique<Gemm>(provider));
}

ProductTimer::~ProductTimer() = default;

void ProductTimer::time(const GemmProduct& product, std::size_t repeats, ProductRates& rates) {
  rates.product = product;
  rates.rates.resize(providers_.size());
  fill(values_a_, product.m * product.k, 1);
  fill(values_b_, product.k * product.n, 2);
  with_types(product, [&]<class In, class Out>(In, Out) {
    time_typed(gemms_, ProductRun<In, Out>(product, values_a_, values_b_), repeats, rates);
  });
}

double combined_rate(const std::vector<ProductRates>& products,
                     const std::function<double(const ProductRates&)>& rate) {
  double flops = 0.0, seconds = 0.0;
  for (const ProductRates& rates : products) {
    const double all = static_cast<double>(rates.product.count) * rates.product.flops();
    flops += all;
    seconds += all / rate(rates);
  }
  return flops / seconds;
}

double ceiling_rate(const std::vector<ProductRates>& products) {
  return combined_rate(products, [](const ProductRates& rates) { return rates.rate(rates.fastest()); });
}

}  // namespace mylos::app
