#include "core/kernels/products/gemm_proof.hpp"

#include "core/base/text/printable.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/kernels/products/gemm_provider.hpp"
#include "core/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>

namespace mylos {
namespace {

constexpr const char* gemm_proof_label = "mylos::gemm::proof";

/// Elements of a result that are compared, and the rows and columns at its end of which a quarter each is.
constexpr std::size_t most_compared = 4096, edge = 16;

/// The difference that is allowed: of sums in float, as a fraction of the sum of the magnitudes of their terms; and of
/// roundings to a type, for each of a product and of what is added to it.
constexpr double of_sum = 0x1p-20;
template <class T>
constexpr double of_rounding = 0x1p-10;
template <>
constexpr double of_rounding<float> = 0x1p-22;
template <>
constexpr double of_rounding<bfloat16> = 0x1p-7;

/// A matrix, its transpose, or a value or a row that is repeated.
template <class T>
struct Factor {
  const T* data;
  std::size_t row, column;  ///< strides

  KOKKOS_INLINE_FUNCTION double operator()(std::size_t i, std::size_t j) const {
    return static_cast<double>(static_cast<float>(data[i * row + j * column]));
  }
};

template <class T>
Factor<T> factor(const Vector<T>& data, Transpose transpose, std::size_t rows, std::size_t columns) {
  return transpose == Transpose::no ? Factor<T>{data.data(), columns, 1} : Factor<T>{data.data(), 1, rows};
}

/// Returns the largest difference of `result` from a b + added as a multiple of what is allowed; infinite if an element
/// is not finite.
template <class In, class Out>
double largest_share(const ExecutionSpace& space, const Matrix<Out>& result, const Factor<In>& a, const Factor<In>& b,
                     std::size_t terms, const Factor<Out>& added) {
  const std::size_t rows = result.extent(0), columns = result.extent(1);
  const std::size_t last_rows = std::min(edge, rows), last_columns = std::min(edge, columns);
  double share = 0.0;
  Kokkos::parallel_reduce(
      gemm_proof_label, Kokkos::RangePolicy<ExecutionSpace>(space, 0, std::min(most_compared, rows * columns)),
      KOKKOS_LAMBDA(std::size_t sample, double& largest) {
        const RandomWords drawn = philox(5, sample, 0);
        std::size_t i = drawn.word[0] % rows, j = drawn.word[1] % columns;
        if (sample % 4 == 1) i = rows - 1 - i % last_rows;
        if (sample % 4 == 2) j = columns - 1 - j % last_columns;
        double product = 0.0, magnitudes = 0.0;
        for (std::size_t p = 0; p < terms; ++p) {
          const double term = a(i, p) * b(p, j);
          product += term;
          magnitudes += Kokkos::fabs(term);
        }
        const double more = added(i, j), got = static_cast<double>(static_cast<float>(result(i, j)));
        const double rounded = Kokkos::fabs(product) + Kokkos::fabs(more);
        const double times = Kokkos::fabs(got - product - more) / (of_rounding<Out> * rounded + of_sum * magnitudes);
        largest = Kokkos::fmax(largest, Kokkos::isfinite(times) ? times : HUGE_VAL);
      },
      Kokkos::Max<double>(share));
  return share;
}

/// Returns the same of a product, and of the sums that the provider computes with a weight gradient.
template <class In, class Out>
double share_of(const ExecutionSpace& space, GemmProvider& provider, const GemmProduct& product) {
  GemmCall call = call_of(product);
  const auto array = [&]<class T>(T value, std::size_t size) {
    const Vector<T> made = uninitialized<T>(gemm_proof_label, size);
    Kokkos::deep_copy(space, made, value);
    return made;
  };
  const Vector<In> left = array(In(), call.m * call.k), right = array(In(), call.k * call.n), one = array(In(1.0f), 1);
  const Out before = Out(call.beta * 0.5f), undefined = Out(call.beta == 0.0f ? std::nanf("") : 0.5f);
  const Vector<Out> bias = array(before, call.n), c = array(undefined, call.m * call.n);
  const Vector<Out> pre = array(undefined, call.epilogue == EpilogueKind::bias_gelu ? c.size() : 0);
  fill_uniform(space, left, 1);
  fill_uniform(space, right, 2);
  if (call.epilogue != EpilogueKind::none) fill_uniform(space, bias, 3);
  call.a = left.data();
  call.b = right.data();
  call.c = c.data();
  call.bias = bias.data();
  call.pre = pre.data();
  const Factor<In> a = factor(left, call.transpose_a, call.m, call.k);
  const auto share_of_product = [&] {
    return largest_share(space, Matrix<Out>(static_cast<Out*>(product_target(call)), call.m, call.n), a,
                         factor(right, call.transpose_b, call.k, call.n), call.k, Factor<Out>{bias.data(), 0, 1});
  };
  provider.multiply(space, call);
  const double share = share_of_product();
  if (call.transpose_a == Transpose::no || call.output != Precision::float32) return share;
  const Vector<float> sums = array(std::nanf(""), call.m), zero = array(0.0f, 1);
  Kokkos::deep_copy(space, c, undefined);
  if (!provider.multiply_and_sum(space, call, sums.data())) return share;
  const double of_sums = largest_share(space, as_matrix(sums, call.m, 1), a, Factor<In>{one.data(), 0, 0}, call.k,
                                       Factor<float>{zero.data(), 0, 0});
  return std::max({share, of_sums, share_of_product()});
}

std::string fault_of(const ExecutionSpace& space, GemmProvider& provider, const GemmProduct& product) {
  const double share = with_type(product.input, [&]<class In>(In) {
    return product.output == Precision::float32 ? share_of<In, float>(space, provider, product)
                                                : share_of<In, In>(space, provider, product);
  });
  if (share <= 1.0) return {};
  const auto letter = [](Transpose transpose) { return transpose == Transpose::no ? "" : "^T"; };
  return fmt::format(
      "elements of {} (A{} B{}, {} x {} with sums of {} {} products) differ by {:.1f} times what is allowed",
      product.name, letter(product.transpose_a), letter(product.transpose_b), product.m, product.n, product.k,
      to_string(product.input), share);
}

}  // namespace

std::string gemm_fault(const ExecutionSpace& space, std::string_view name, std::span<const GemmProduct> products) {
  std::string fault;
  try {
    const std::unique_ptr<GemmProvider> provider = make_gemm_provider(name);
    for (GemmProduct product : products) {
      product.convolution.reset();
      if (fault = fault_of(space, *provider, product); !fault.empty()) break;
    }
  } catch (const std::exception& error) {
    fault = on_one_line(error.what());
  }
  return fault;
}

}  // namespace mylos
