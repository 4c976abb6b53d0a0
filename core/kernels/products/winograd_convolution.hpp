#pragma once

#include "core/kernels/products/gemm_provider.hpp"

#include <functional>

namespace mylos {

/// A batch of `count` products of float matrices stored consecutively, each C (m, n) = op(A) op(B) + beta C.
struct ProductBatch {
  std::size_t count = 1;
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  std::size_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  float beta = 0.0f;  ///< 0 or 1
};

/// Float convolutions of 3 x 3 kernels with stride 1 on the host, by Winograd's minimal filtering F(2 x 2, 3 x 3): each
/// tile of 2 x 2 output pixels needs 16 instead of 36 multiplications per pair of channels. The method transforms 4 x 4
/// tiles of the images, the weights and, for weight gradients, 2 x 2 tiles of dy; multiplies the elements at each of
/// the 16 tile positions as matrices, one block of tiles at a time; and transforms the products back.
///
/// Blocks extend across images. Calls with the same images give the same bits. With other images in the call, an image
/// keeps its bits if the provider computes each row of a product independently of the other rows. The rounding error is
/// a few times that of a direct sum of the same terms; a non-finite pixel makes its whole tile non-finite. Source:
/// Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016.
class WinogradConvolution {
 public:
  /// Queues a batch of products.
  using Multiply = std::function<void(const ProductBatch&)>;

  /// Queues a convolution for which has_winograd (core/kernels/products/winograd_sizes.hpp) is true.
  void compute(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);

 private:
  /// Convolves tiles of `from` with the transformed weights: forward, or dx from dy.
  void convolve(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);
  void weight_gradient(const ExecutionSpace& space, const GemmCall& call, const Multiply& multiply);

  GemmWorkspace images_, results_, weights_;
};

}  // namespace mylos
