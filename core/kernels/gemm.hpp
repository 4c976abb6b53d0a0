#pragma once

#include "core/device.hpp"
#include "core/kernels/gemm_choice.hpp"
#include "core/kernels/gemm_product.hpp"
#include "core/numeric.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Matrix products, and who computes them. Source: C (M, N) = op(A) op(B) + beta C, all row-major and contiguous.
/// Sums are float in every precision.
namespace mylos {

/// An epilogue on C of element type T; `pre` (M, N) is written by bias_gelu and read by gelu_gradient.
template <class T>
struct Epilogue {
  EpilogueKind kind = EpilogueKind::none;
  ConstVector<T> bias;  ///< (N)
  Matrix<T> pre;        ///< (M, N)
};

/// One product as providers see it; pointers are to device memory of the stated element types.
struct GemmCall {
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  std::size_t m = 0, n = 0, k = 0;
  Precision input = Precision::float32, output = Precision::float32;  ///< of A and B; of C, bias and pre
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  float beta = 0.0f;  ///< 0 or 1
  EpilogueKind epilogue = EpilogueKind::none;
  const void* bias = nullptr;
  void* pre = nullptr;
  std::optional<Convolution> convolution = {};  ///< operands as GemmProduct says; without an epilogue
};

/// The call of `product` without its operands.
GemmCall call_of(const GemmProduct& product);

/// A library that computes products, and convolutions among them: where it has none of its own, by its products
/// (core/kernels/gathered_convolution.hpp). One file each; a new one is added to the list in core/CMakeLists.txt.
class GemmProvider {
 public:
  virtual ~GemmProvider() = default;
  virtual std::string_view name() const = 0;
  /// What its speed depends on beside the CPU: its version, and what it was told in the environment.
  virtual std::string version() const = 0;
  /// Bytes that it takes beside the operands for these products: copies of them, where it makes any.
  virtual std::size_t workspace_bytes(std::span<const GemmProduct> products) = 0;
  /// Bytes that what it keeps of products may still grow by.
  virtual std::size_t growth_bytes() const { return 0; }
  /// Queues the product on `space`.
  virtual void multiply(const ExecutionSpace& space, const GemmCall& call) = 0;
};

/// Bytes that providers on the host take for these with so many threads, before it is known which: copies of blocks of
/// A and B for each thread, and generated code. An estimate for plans; a run measures it (`warm_up`).
std::size_t host_product_bytes(std::span<const GemmProduct> products, std::size_t threads);

/// Bytes of float copies that a provider without 16-bit products makes of these: the most that any provider copies but
/// for packed weights.
std::size_t widened_bytes(std::span<const GemmProduct> products);

/// Names of the providers of this build, the portable one first.
std::vector<std::string> built_gemm_providers();

/// Those of them that round no float operands, whether they can be used here or not.
std::vector<std::string> built_exact_gemm_providers();

/// Why the provider `name` of this build cannot be used here, in one line that says what to change; empty where it can.
/// Some look for a library of the vendor when they are first asked.
std::string gemm_provider_obstacle(std::string_view name);

/// Names of the providers of this build that can be used here, the portable one first.
std::vector<std::string> gemm_providers();

/// Those of them that multiply float operands as they are: timing chooses among these only, and what is less exact is
/// taken where it is asked for (--tf32).
std::vector<std::string> exact_gemm_providers();

/// The exact providers that are timed against each other for products, or for convolutions. On a device only the
/// vendor's are meant for speed: one for products, and for convolutions those that compute nothing else as well.
std::vector<std::string> timed_gemm_providers(bool of_convolutions, bool on_host = runs_on_host);

/// The provider that rounds float operands to TF32, 10 fraction bits, for tensor cores; empty where the build has none.
std::string tf32_gemm_provider();

/// The provider of products for which none was chosen: the last of the build, which is the most particular.
std::string default_gemm_provider();

/// The provider called `name`. Errors: std::runtime_error listing what this build has, or with the provider's obstacle.
std::unique_ptr<GemmProvider> make_gemm_provider(std::string_view name);

/// The typed front of the providers, which is what layers call.
class Gemm {
 public:
  /// Everything by `provider`. Errors: those of make_gemm_provider, as below.
  explicit Gemm(std::string_view provider) : Gemm(GemmChoice{std::string(provider), {}}) {}
  explicit Gemm(GemmChoice choice);

  const GemmChoice& choice() const { return choice_; }
  /// The provider of what is not chosen by product.
  std::string_view provider() const { return choice_.fallback; }
  /// Bytes that the providers of these products take beside the operands.
  std::size_t workspace_bytes(std::span<const GemmProduct> products) const;
  /// Bytes that what its providers keep of products may still grow by.
  std::size_t growth_bytes() const;

  /// The product as providers see it, whose shapes are right.
  void multiply(const ExecutionSpace& space, const GemmCall& call) const;

  /// C (M, N) = op(A) op(B) + beta C, then the epilogue. Errors: std::invalid_argument showing the three shapes.
  template <class In, class Out>
  void operator()(const ExecutionSpace& space, Transpose transpose_a, const ConstMatrix<In>& a, Transpose transpose_b,
                  const ConstMatrix<In>& b, float beta, const Matrix<Out>& c, const Epilogue<Out>& epilogue = {}) const;

 private:
  GemmProvider& provider_for(const GemmProduct& product) const;

  GemmChoice choice_;
  std::map<std::string, std::unique_ptr<GemmProvider>, std::less<>> providers_;
};

}  // namespace mylos
