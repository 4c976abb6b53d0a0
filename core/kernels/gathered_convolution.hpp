#pragma once

#include "core/kernels/gemm_provider.hpp"

#include <functional>

/// Convolutions by a provider's own products. The image patches that a product reads are gathered into a workspace of
/// bounded size, a block of rows at a time, and each block is multiplied; a pointwise convolution is one product and
/// nothing is gathered. Input gradients gather as well, from dy: nothing is added up by scattering. Weight gradients
/// add up blocks in their order.
namespace mylos {

class GatheredConvolution {
 public:
  /// Queues a product whose call has no convolution.
  using Multiply = std::function<void(const GemmCall&)>;

  /// Queues the convolution, in the precision of its operands.
  void compute(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);

  /// Bytes of workspace when it has computed all of these that are convolutions.
  static std::size_t bytes(std::span<const GemmProduct> products);

 private:
  void forward(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);
  void weight_gradient(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);
  void input_gradient(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);

  GemmWorkspace gathered_, weights_, results_;
};

}  // namespace mylos
