#pragma once

#include "core/kernels/products/gemm_provider.hpp"

#include <functional>

/// Convolutions by a provider's matrix products. The image patches that a product reads are gathered into a workspace
/// of bounded size, one block of rows at a time, and each block is multiplied; a pointwise convolution is a single
/// product without gathering. Input gradients also gather, from dy, so nothing is scattered. Weight gradients sum the
/// blocks in order. On a device, gathered rows are padded with zeros to a multiple of 16 bytes, and so are copies of
/// the weights and of their gradient.
namespace mylos {

class GatheredConvolution {
 public:
  /// Queues a product whose call has no convolution.
  using Multiply = std::function<void(const GemmCall&)>;

  /// Queues the convolution, in the precision of its operands.
  void compute(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);

  /// Returns the bytes of workspace after all convolutions among `products` have been computed.
  static std::size_t bytes(std::span<const GemmProduct> products, bool on_host = runs_on_host);

 private:
  void forward(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);
  void weight_gradient(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);
  void input_gradient(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);

  GemmWorkspace gathered_, weights_, results_;
};

}  // namespace mylos
