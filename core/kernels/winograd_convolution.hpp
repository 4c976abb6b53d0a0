#pragma once

#include "core/kernels/gemm_provider.hpp"

#include <functional>

namespace mylos {

/// `count` products of float matrices that stand one after the other, each C (m, n) = op(A) op(B) + beta C.
struct ProductBatch {
  std::size_t count = 1;
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  std::size_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  float beta = 0.0f;  ///< 0 or 1
};

/// Convolutions of 3 x 3 and stride 1 in float on the host, by Winograd's minimal filtering F(2 x 2, 3 x 3): each tile
/// of 2 x 2 pixels of the result takes 16 multiplications for a pair of channels in place of 36. Tiles of 4 x 4 pixels
/// of the images, the weights and, for weight gradients, tiles of 2 x 2 pixels of dy are transformed; the elements at
/// each of the 16 positions of their tiles are multiplied as matrices, a block of tiles at a time; and what comes out
/// is transformed back. Blocks run across images: bits are the same for the same images in a call, and else as
/// independent of others as the provider's rows are. Rounding is that of a sum of the same terms, times a few; a pixel
/// that is not finite makes its whole tile so. Source: Lavin and Gray, Fast Algorithms for Convolutional Neural
/// Networks, CVPR 2016.
class WinogradConvolution {
 public:
  /// Queues a batch of products.
  using Multiply = std::function<void(const ProductBatch&)>;

  /// Queues a convolution that has_winograd (core/kernels/winograd_sizes.hpp).
  void compute(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);

 private:
  /// Convolves tiles of `from` with the transformed weights: forward, or dx from dy.
  void convolve(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);
  void weight_gradient(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);

  GemmWorkspace images_, results_, weights_;
};

}  // namespace mylos
