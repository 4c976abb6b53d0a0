#include "core/kernels/products/float_convolution.hpp"
#include "core/kernels/products/gathered_convolution.hpp"
#include "core/kernels/products/gemm_provider.hpp"
#include "core/kernels/products/openblas_kernels.hpp"

#include <KokkosKernels_config.h>
#include <fmt/format.h>
#include <KokkosBlas3_gemm.hpp>

#include <algorithm>
#include <iterator>
#include <vector>

/// Products by Kokkos Kernels: OpenBLAS or another BLAS on the host, cuBLAS on NVIDIA devices. Float only; 16-bit
/// operands are converted, which takes one pass over each.
namespace mylos {
namespace {

ConstMatrix<float> operand(const void* data, std::size_t rows, std::size_t columns) {
  return ConstMatrix<float>(static_cast<const float*>(data), rows, columns);
}

const char* blas_letter(Transpose transpose) { return transpose == Transpose::no ? "N" : "T"; }

void multiply_float(const ExecutionSpace& space, const GemmCall& call) {
  const std::size_t rows_a = rows_of_a(call), rows_b = rows_of_b(call);
  const Matrix<float> c(static_cast<float*>(call.c), call.m, call.n);
  KokkosBlas::gemm(space, blas_letter(call.transpose_a), blas_letter(call.transpose_b), 1.0f,
                   operand(call.a, rows_a, call.m * call.k / rows_a), operand(call.b, rows_b, call.k * call.n / rows_b),
                   call.beta, c);
}

class KokkosKernelsGemm : public GemmProvider {
 public:
  std::string_view name() const override;
  std::string version() const override;
  std::size_t workspace_bytes(std::span<const GemmProduct> products) override;

  void multiply(const ExecutionSpace& space, const GemmCall& call) override {
    if (call.convolution) return convolve(space, call);
    if (call.input != Precision::float32) {
      const GemmCall product = operands_.widen(space, call);
      multiply_float(space, product);
      return operands_.narrow(space, call, product);
    }
    GemmCall product = call;
    product.c = product_target(call);
    multiply_float(space, product);
    apply_epilogue(space, call);
  }

 private:
  void convolve(const ExecutionSpace& space, const GemmCall& call) {
    if (call.input != Precision::float32) {
      return float_images_.compute(space, call, [&](const GemmCall& product) { convolve(space, product); });
    }
    gathered_.compute(space, call, [&](const GemmCall& product) { multiply(space, product); });
  }

  FloatOperands operands_;
  GatheredConvolution gathered_;
  FloatConvolution float_images_;
};

/// Called when the program starts: clang would compile a constant, and what it points to, for AMD GPUs as well.
GemmProviderEntry kokkos_kernels_entry() {
  return {"kokkos-kernels", []() -> std::unique_ptr<GemmProvider> { return std::make_unique<KokkosKernelsGemm>(); }};
}

}  // namespace

extern const GemmProviderEntry kokkos_kernels_gemm;
const GemmProviderEntry kokkos_kernels_gemm = kokkos_kernels_entry();

std::string_view KokkosKernelsGemm::name() const { return kokkos_kernels_gemm.name; }

std::size_t KokkosKernelsGemm::workspace_bytes(std::span<const GemmProduct> products) {
  std::vector<GemmProduct> in_float = FloatConvolution::widened(products);
  std::ranges::copy_if(products, std::back_inserter(in_float),
                       [](const GemmProduct& product) { return product.input == Precision::float32; });
  return FloatOperands::bytes(products) + FloatConvolution::bytes(products) + GatheredConvolution::bytes(in_float);
}

std::string KokkosKernelsGemm::version() const {
  return fmt::format("{}.{}.{}, {} {}", KOKKOSKERNELS_VERSION_MAJOR, KOKKOSKERNELS_VERSION_MINOR,
                     KOKKOSKERNELS_VERSION_PATCH, openblas_config(), openblas_kernels());
}

}  // namespace mylos
