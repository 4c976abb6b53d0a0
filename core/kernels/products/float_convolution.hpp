#pragma once

#include "core/kernels/products/gemm_provider.hpp"

#include <functional>

namespace mylos {

/// Computes 16-bit convolutions in float for providers that do not support them: converts a few images at a time to
/// float, convolves, and converts the results back.
class FloatConvolution {
 public:
  /// Queues a convolution of float operands.
  using Convolve = std::function<void(const GemmCall&)>;

  void compute(const ExecutionSpace& space, const GemmCall& call, const Convolve& convolve);

  /// Returns the 16-bit convolutions among `products` in the form in which they are computed: in float, with the number
  /// of images per block.
  static std::vector<GemmProduct> widened(std::span<const GemmProduct> products);
  /// Returns the bytes of the float copies after all 16-bit convolutions among `products` have been computed.
  static std::size_t bytes(std::span<const GemmProduct> products);

 private:
  GemmWorkspace a_, b_, c_;
};

}  // namespace mylos
