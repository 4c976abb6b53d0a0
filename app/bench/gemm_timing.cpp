#include "app/bench/gemm_timing.hpp"

#include "core/base/error.hpp"
#include "core/base/median.hpp"
#include "core/kernels/products/gemm_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

namespace mylos::app {
namespace {

/// Returns the value of an operand's element; `index` is row-major.
using ElementOf = std::function<double(std::size_t index)>;

/// Returns the pixel of x that pixel `to` of y reads at a tap; nullopt if it is outside the image.
std::optional<std::size_t> pixel_read(const ConvolutionShape& shape, std::size_t to, std::size_t tap) {
  const std::size_t image = to / shape.out_pixels(), row = to % shape.out_pixels() / shape.out_width(),
                    column = to % shape.out_width();
  // Negative values wrap around to numbers far beyond the image.
  const std::size_t h = row * shape.stride + tap / shape.kernel_width - shape.padding,
                    w = column * shape.stride + tap % shape.kernel_width - shape.padding;
  if (h >= shape.height || w >= shape.width) return std::nullopt;
  return (image * shape.height + h) * shape.width + w;
}

/// Returns the pixel of y that reads pixel `from` of x at a tap; nullopt if there is none.
std::optional<std::size_t> pixel_reading(const ConvolutionShape& shape, std::size_t from, std::size_t tap) {
  const std::size_t image = from / shape.pixels(), in_image = from % shape.pixels();
  const std::size_t h = in_image / shape.width + shape.padding - tap / shape.kernel_width,
                    w = in_image % shape.width + shape.padding - tap % shape.kernel_width;
  if (h % shape.stride != 0 || w % shape.stride != 0 || h / shape.stride >= shape.out_height() ||
      w / shape.stride >= shape.out_width()) {
    return std::nullopt;
  }
  return image * shape.out_pixels() + h / shape.stride * shape.out_width() + w / shape.stride;
}

std::size_t taps_of(const ConvolutionShape& shape) { return shape.kernel_height * shape.kernel_width; }

double forward_element(const ConvolutionShape& shape, std::size_t row, std::size_t output, const ElementOf& x,
                       const ElementOf& weight) {
  double sum = 0.0;
  for (std::size_t tap = 0; tap < taps_of(shape); ++tap) {
    const auto pixel = pixel_read(shape, row, tap);
    for (std::size_t i = 0; pixel && i < shape.in; ++i) {
      sum += x(*pixel * shape.in + i) * weight(output * shape.terms() + tap * shape.in + i);
    }
  }
  return sum;
}

double input_gradient_element(const ConvolutionShape& shape, std::size_t row, std::size_t input, const ElementOf& dy,
                              const ElementOf& weight) {
  double sum = 0.0;
  for (std::size_t tap = 0; tap < taps_of(shape); ++tap) {
    const auto pixel = pixel_reading(shape, row, tap);
    for (std::size_t o = 0; pixel && o < shape.out; ++o) {
      sum += dy(*pixel * shape.out + o) * weight(o * shape.terms() + tap * shape.in + input);
    }
  }
  return sum;
}

double weight_gradient_element(const ConvolutionShape& shape, std::size_t pixels, std::size_t output,
                               std::size_t column, const ElementOf& dy, const ElementOf& x) {
  double sum = 0.0;
  for (std::size_t row = 0; row < pixels; ++row) {
    const auto pixel = pixel_read(shape, row, column / shape.in);
    if (pixel) sum += dy(row * shape.out + output) * x(*pixel * shape.in + column % shape.in);
  }
  return sum;
}

/// Returns the number of columns of C.
std::size_t result_columns(const GemmProduct& product) {
  const bool is_image = product.convolution.has_value() && product.convolution->pass == ConvolutionPass::input_gradient;
  return is_image ? product.convolution->shape.in : product.n;
}

/// Returns the number of terms in the sum for an element of C; for convolutions, the largest number.
std::size_t terms_of(const GemmProduct& product) {
  const bool is_image = product.convolution.has_value() && product.convolution->pass == ConvolutionPass::input_gradient;
  return is_image ? taps_of(product.convolution->shape) * product.k : product.k;
}

/// Returns element (row, column) of op(A) op(B), or of the convolution of its operands.
double product_element(const GemmProduct& product, std::size_t row, std::size_t column, const ElementOf& a,
                       const ElementOf& b) {
  if (product.convolution) {
    const auto& [shape, pass] = *product.convolution;
    if (pass == ConvolutionPass::forward) return forward_element(shape, row, column, a, b);
    if (pass == ConvolutionPass::input_gradient) return input_gradient_element(shape, row, column, a, b);
    return weight_gradient_element(shape, product.k, row, column, a, b);
  }
  const bool ta = product.transpose_a == Transpose::yes, tb = product.transpose_b == Transpose::yes;
  double sum = 0.0;
  for (std::size_t i = 0; i < product.k; ++i) {
    sum += a(ta ? i * product.m + row : row * product.k + i) * b(tb ? column * product.k + i : i * product.n + column);
  }
  return sum;
}

constexpr std::size_t checked_elements = 64;

/// Fills `values` with `count` reproducible values in [-1, 1).
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
        a_(upload<In>(a, operand_sizes(product).a)),
        b_(upload<In>(b, operand_sizes(product).b)),
        c_("mylos::bench::result", operand_sizes(product).c) {}

  void launch(const Gemm& gemm) const {
    GemmCall call = call_of(product_);
    call.a = a_.data();
    call.b = b_.data();
    call.c = c_.data();
    call.beta = 0.0f;
    call.epilogue = EpilogueKind::none;
    gemm.multiply(space_, call);
  }

  /// Returns the seconds of each of `launches` products that follow one another without a wait of the host.
  double seconds(const Gemm& gemm, std::size_t launches) const {
    LaunchTime begin, end;
    begin.set(space_);
    for (std::size_t i = 0; i < launches; ++i) launch(gemm);
    end.set(space_);
    return end.seconds_since(begin) / static_cast<double>(launches);
  }

  /// Waits for the product and checks it.
  void check(std::string_view provider) const {
    const auto c = Kokkos::create_mirror_view_and_copy(HostSpace(), c_);
    // Bounds for the rounding of the output and of the sum, far below the effect of one wrong term of order 1.
    const double rounding = sizeof(Out) == 2 ? 1.0 / 128 : 1e-6, of_terms = is_exact(provider) ? 1e-5 : 1e-3;
    // In a long sum that is accumulated in order, the rounding error is relative to the partial sums.
    constexpr double of_long_sums = 1e-7;
    const auto terms = static_cast<double>(terms_of(product_));
    const std::size_t columns = result_columns(product_);
    std::minstd_rand generator(3);
    for (std::size_t i = 0; i < checked_elements; ++i) {
      const std::size_t at = generator() % c.size(), row = at / columns, column = at % columns;
      const double expected = element(row, column), actual = static_cast<float>(c(at));
      if (std::abs(actual - expected) <=
          rounding * std::abs(expected) + of_terms * std::sqrt(terms) + of_long_sums * terms)
        continue;
      fail(fmt::format("{} by {}: element ({}, {}) is {}, and should be {}", product_.name, provider, row, column,
                       actual, expected));
    }
  }

 private:
  double element(std::size_t row, std::size_t column) const {
    const auto rounded = [](const std::vector<float>& values) {
      return [&values](std::size_t index) { return static_cast<double>(static_cast<float>(In(values[index]))); };
    };
    return product_element(product_, row, column, rounded(values_a_), rounded(values_b_));
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
  std::vector<std::size_t> launches;
  for (const auto& gemm : gemms) {
    run.launch(*gemm);
    run.check(gemm->provider());
    launches.push_back(runs_on_host ? 1 : launches_per_timing(run.seconds(*gemm, 1)));
  }
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t provider = 0; provider < gemms.size(); ++provider) {
      const double seconds = run.seconds(*gemms[provider], launches[provider]);
      rates.rates[provider].push_back(rates.product.flops() / seconds);
    }
  }
}

/// Calls f(In(), Out()) with the element types of a product; products write float or the operands' type.
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
           product.convolution == label.convolution && product.n == label.n &&
           (rows_are_summed ? product.m == label.m : product.k == label.k);
  };
  const auto found = std::ranges::find_if(products, same);
  if (found != products.end()) return found->name;
  const std::string sizes = fmt::format("{} x {} x {}", label.m, label.n, label.k);
  return label.convolution ? "convolution " + sizes : sizes;
}

std::size_t launches_per_timing(double seconds) {
  constexpr double timed = 2e-3;  // a device event has a resolution of half a microsecond
  constexpr double most = 256.0;  // device queues hold about a thousand launches, and a product may be several
  return static_cast<std::size_t>(std::clamp(std::ceil(timed / seconds), 1.0, most));
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
  const OperandSizes sizes = operand_sizes(product);
  fill(values_a_, sizes.a, 1);
  fill(values_b_, sizes.b, 2);
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
