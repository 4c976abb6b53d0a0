#pragma once

#include "core/kernels/gemm_provider.hpp"

#include <functional>

namespace mylos {

/// Does in float the convolutions that a provider cannot do in 16 bits, a few images at a time: converts them,
/// convolves, and converts the results back.
class FloatConvolution {
 public:
  /// Queues a convolution of float operands.
  using Convolve = std::function<void(const GemmCall&)>;

  void compute(const ExecutionSpace& space, const GemmCall& call, const Convolve& convolve);

  /// The convolutions of 16 bits among these as they are computed: in float, of no more images than at a time.
  static std::vector<GemmProduct> widened(std::span<const GemmProduct> products);
  /// Bytes of its copies when it has computed all of these that are convolutions of 16 bits.
  static std::size_t bytes(std::span<const GemmProduct> products);

 private:
  GemmWorkspace a_, b_, c_;
};

}  // namespace mylos
