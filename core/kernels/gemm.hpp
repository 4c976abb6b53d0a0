#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// Matrix products, and who computes them. Source: C (M, N) = op(A) op(B) + beta C, all row-major and contiguous.
/// Sums are float in every precision.
namespace mylos {

enum class Transpose { no, yes };

/// What is done to C's elements before they are written. A provider without it runs the same kernel afterwards.
enum class EpilogueKind {
  none,
  bias,           ///< c += bias[column]
  bias_gelu,      ///< pre = c + bias[column], kept; c = gelu(pre)
  gelu_gradient,  ///< c *= gelu'(pre)
};

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
};

/// A library that computes products. One file each; a new one is added to `gemm_providers` and nowhere else.
class GemmProvider {
 public:
  virtual ~GemmProvider() = default;
  virtual std::string_view name() const = 0;
  /// Queues the product on `space`.
  virtual void multiply(const ExecutionSpace& space, const GemmCall& call) = 0;
};

/// Names of the providers of this build, the portable default first.
std::vector<std::string> gemm_providers();

/// The provider called `name`. Errors: std::runtime_error listing what this build has.
std::unique_ptr<GemmProvider> make_gemm_provider(std::string_view name);

/// The typed front of a provider, which is what layers call.
class Gemm {
 public:
  explicit Gemm(std::string_view provider) : provider_(make_gemm_provider(provider)) {}

  std::string_view provider() const { return provider_->name(); }

  /// C (M, N) = op(A) op(B) + beta C, then the epilogue. Errors: std::invalid_argument showing the three shapes.
  template <class In, class Out>
  void operator()(const ExecutionSpace& space, Transpose transpose_a, const ConstMatrix<In>& a, Transpose transpose_b,
                  const ConstMatrix<In>& b, float beta, const Matrix<Out>& c, const Epilogue<Out>& epilogue = {}) const;

 private:
  std::unique_ptr<GemmProvider> provider_;
};

}  // namespace mylos
