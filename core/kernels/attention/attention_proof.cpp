#include "core/kernels/attention/attention_proof.hpp"

#include "core/base/text/printable.hpp"
#include "core/element_type.hpp"
#include "core/kernels/elementwise.hpp"

#include <fmt/format.h>

#include <cmath>
#include <exception>

namespace mylos {
namespace {

constexpr const char* proof_label = "mylos::Attention::proof";

/// Arrays with inputs, and NaN where the passes must write.
template <class T>
PackedAttention<T> poisoned_arrays(const ExecutionSpace& space, const AttentionUse& use) {
  PackedAttention<T> arrays(proof_label, use.shape, proof_lengths);
  if (use.shape.window != no_window) arrays.shape.window = std::min(use.shape.window, proof_window);
  arrays.dropout = {.seed = 1, .step = 2, .site = 3, .probability = static_cast<float>(use.dropout)};
  fill_uniform(space, Vector<T>(arrays.qkv.data(), arrays.qkv.size()), 1, 2.5f);
  fill_uniform(space, Vector<T>(arrays.dout.data(), arrays.dout.size()), 2, 1.5f);
  const T undefined = T(std::nanf(""));
  Kokkos::deep_copy(space, arrays.out, undefined);
  Kokkos::deep_copy(space, arrays.dqkv, undefined);
  Kokkos::deep_copy(space, arrays.log_sum_exp, std::nanf(""));
  Kokkos::deep_copy(space, arrays.row_sums, std::nanf(""));
  return arrays;
}

/// The columns of a matrix that make up an array of attention.
struct Part {
  const char* name;
  std::size_t begin, end;
  double tolerance;
};

/// Compares these columns. Returns the largest difference as a fraction of what is allowed, or a fault.
template <class T>
AttentionProof compare(const ExecutionSpace& space, const Matrix<T>& got, const Matrix<T>& expected, const Part& part) {
  double largest = 0.0, difference = 0.0;
  std::size_t undefined = 0;
  const std::size_t columns = part.end - part.begin, begin = part.begin;
  Kokkos::parallel_reduce(
      proof_label, Kokkos::RangePolicy<ExecutionSpace>(space, 0, got.extent(0) * columns),
      KOKKOS_LAMBDA(std::size_t i, double& of_expected, double& of_difference, std::size_t& of_undefined) {
        const std::size_t row = i / columns, column = begin + i % columns;
        const double a = static_cast<float>(got(row, column)), b = static_cast<float>(expected(row, column));
        const double between = Kokkos::fabs(a - b);
        of_expected = Kokkos::fmax(of_expected, Kokkos::fabs(b));
        of_difference = Kokkos::fmax(of_difference, between);
        of_undefined += Kokkos::isfinite(between) ? 0 : 1;  // fmax passes over NaN
      },
      Kokkos::Max<double>(largest), Kokkos::Max<double>(difference), undefined);
  if (undefined > 0) {
    return {.fault =
                fmt::format("{}: {} of {} elements are not finite", part.name, undefined, got.extent(0) * columns)};
  }
  const double relative = largest > 0.0 ? difference / largest : difference;
  if (relative <= part.tolerance) return {.share = relative / part.tolerance};
  return {.fault = fmt::format(
              "{} differs from the portable kernel's by {:.2g} of the largest element, and {:.2g} is allowed",
              part.name, relative, part.tolerance)};
}

}  // namespace

template <class T>
AttentionProof prove_attention_passes(const ExecutionSpace& space, const AttentionUse& use,
                                      const AttentionPasses<T>& passes) {
  const PackedAttention<T> got = poisoned_arrays<T>(space, use);
  passes(space, got);
  PackedAttention<T> expected = poisoned_arrays<T>(space, use);
  expected.shape.kernel = AttentionKernel::portable;
  expected.compute(space);
  constexpr double of_out = attention_tolerance<T>, of_gradient = 2.0 * of_out;
  const std::size_t queries = use.shape.heads * use.shape.head_size,
                    keys = use.shape.key_value_heads * use.shape.head_size;
  AttentionProof proof = compare(space, got.out, expected.out, {"out", 0, queries, of_out});
  const std::array<Part, 3> gradients = {
      {{"the gradient of the queries", 0, queries, of_gradient},
       {"the gradient of the keys", queries, queries + keys, of_gradient},
       {"the gradient of the values", queries + keys, queries + 2 * keys, of_gradient}}};
  for (const Part& part : gradients) {
    if (!proof.agrees()) break;
    AttentionProof next = compare(space, got.dqkv, expected.dqkv, part);
    next.share = std::max(next.share, proof.share);
    proof = std::move(next);
  }
  proof.kernel = use.shape.kernel;
  if (!proof.agrees()) proof.share = 0.0;
  return proof;
}

AttentionProof prove_attention(const ExecutionSpace& space, AttentionKernel kernel, const AttentionUse& use) {
  AttentionUse of_kernel = use;
  of_kernel.shape.kernel = kernel;
  try {
    return with_type(use.precision, [&]<class T>(T) {
      return prove_attention_passes<T>(
          space, of_kernel, [](const ExecutionSpace& on, const PackedAttention<T>& arrays) { arrays.compute(on); });
    });
  } catch (const std::exception& error) {
    return {.kernel = kernel, .fault = on_one_line(error.what())};
  }
}

template AttentionProof prove_attention_passes<float>(const ExecutionSpace&, const AttentionUse&,
                                                      const AttentionPasses<float>&);
template AttentionProof prove_attention_passes<bfloat16>(const ExecutionSpace&, const AttentionUse&,
                                                         const AttentionPasses<bfloat16>&);
template AttentionProof prove_attention_passes<half>(const ExecutionSpace&, const AttentionUse&,
                                                     const AttentionPasses<half>&);

}  // namespace mylos
