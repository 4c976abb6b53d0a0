#pragma once

#include "core/device.hpp"
#include "core/kernels/products/gemm_choice.hpp"
#include "core/kernels/products/gemm_product.hpp"
#include "core/kernels/products/gemm_providers.hpp"
#include "core/numeric.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Matrix products and their providers: C (M, N) = op(A) op(B) + beta C, all row-major and contiguous. Sums are float
/// in every precision.
namespace mylos {

/// An epilogue on C of element type T; `pre` (M, N) is written by bias_gelu.
template <class T>
struct Epilogue {
  EpilogueKind kind = EpilogueKind::none;
  ConstVector<T> bias;  ///< (N)
  Matrix<T> pre;        ///< (M, N)
};

/// One product as passed to providers; pointers are to device memory of the stated element types.
struct GemmCall {
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  std::size_t m = 0, n = 0, k = 0;
  Precision input = Precision::float32, output = Precision::float32;  ///< types of A and B; of C, bias and pre
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  float beta = 0.0f;  ///< 0 or 1
  EpilogueKind epilogue = EpilogueKind::none;
  const void* bias = nullptr;
  void* pre = nullptr;
  std::optional<Convolution> convolution = {};  ///< operands as in GemmProduct; without an epilogue
};

/// Returns the call of `product` without its operands.
GemmCall call_of(const GemmProduct& product);

/// A library that computes products and convolutions. If it has no convolutions of its own, they are computed by its
/// products (core/kernels/products/gathered_convolution.hpp). Each provider is in one file; new ones are added to the
/// list in core/kernels/CMakeLists.txt.
class GemmProvider {
 public:
  virtual ~GemmProvider() = default;
  virtual std::string_view name() const = 0;
  /// Returns everything apart from the CPU that affects the provider's speed: its version and settings from the
  /// environment.
  virtual std::string version() const = 0;
  /// Returns the bytes of workspace for these products, such as copies of operands.
  virtual std::size_t workspace_bytes(std::span<const GemmProduct> products) = 0;
  /// Bytes that the provider's caches may still grow by.
  virtual std::size_t growth_bytes() const { return 0; }
  /// Queues the product on `space`.
  virtual void multiply(const ExecutionSpace& space, const GemmCall& call) = 0;
  /// Queues a product with transposed A and float result on `space`, and with it sums (m) = column sums of A (k, m).
  /// Returns false, and queues nothing, if the provider cannot compute both together.
  virtual bool multiply_and_sum(const ExecutionSpace&, const GemmCall&, [[maybe_unused]] float* sums) { return false; }
};

/// Estimates the bytes that host providers need for these products with `threads` threads, before the provider is
/// chosen: copies of blocks of A and B per thread, and generated code. For plans; a run measures it (`warm_up`).
std::size_t host_product_bytes(std::span<const GemmProduct> products, std::size_t threads);

/// Returns the bytes of float copies that a provider without 16-bit products makes: the largest copies of any provider
/// apart from packed weights.
std::size_t widened_bytes(std::span<const GemmProduct> products);

/// Returns the exact providers to time against each other for products or for convolutions. On a device only the
/// vendor's providers are candidates: one for products, plus those that only compute convolutions.
std::vector<std::string> timed_gemm_providers(bool of_convolutions, bool on_host = runs_on_host);

/// Creates the provider called `name`. Errors: std::runtime_error listing the providers of this build, or with the
/// provider's obstacle.
std::unique_ptr<GemmProvider> make_gemm_provider(std::string_view name);

/// The typed interface to the providers, which layers call.
class Gemm {
 public:
  /// Uses `provider` for all products. Errors, also below: those of make_gemm_provider.
  explicit Gemm(std::string_view provider) : Gemm(GemmChoice{std::string(provider), {}}) {}
  explicit Gemm(GemmChoice choice);

  const GemmChoice& choice() const { return choice_; }
  /// The provider for products without an entry of their own.
  std::string_view provider() const { return choice_.fallback; }
  /// Returns the bytes of workspace that the providers need for these products.
  std::size_t workspace_bytes(std::span<const GemmProduct> products) const;
  /// Bytes that the providers' caches may still grow by.
  std::size_t growth_bytes() const;

  /// Computes a product in the form passed to providers; shapes are not checked.
  void multiply(const ExecutionSpace& space, const GemmCall& call) const;

  /// C (M, N) = op(A) op(B) + beta C, then the epilogue. Errors: std::invalid_argument showing the three shapes.
  template <class In, class Out>
  void operator()(const ExecutionSpace& space, Transpose transpose_a, const ConstMatrix<In>& a, Transpose transpose_b,
                  const ConstMatrix<In>& b, float beta, const Matrix<Out>& c, const Epilogue<Out>& epilogue = {}) const;

  /// C (M, N) = A^T B + beta C, and sums (M) += column sums of A (K, M): the gradients of a linear layer's weight and
  /// bias. The workspace needs column_sum_workspace(K, M) floats. Errors: as above.
  template <class In>
  void multiply_and_sum(const ExecutionSpace& space, const ConstMatrix<In>& a, const ConstMatrix<In>& b, float beta,
                        const Matrix<float>& c, const Vector<float>& sums, const Vector<float>& workspace) const;

 private:
  GemmProvider& provider_for(const GemmProduct& product) const;

  GemmChoice choice_;
  std::map<std::string, std::unique_ptr<GemmProvider>, std::less<>> providers_;
};

}  // namespace mylos
