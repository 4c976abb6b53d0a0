#pragma once

#include "core/kernels/convolution_shape.hpp"
#include "core/numeric.hpp"

#include <cstddef>
#include <optional>
#include <string>

/// What a matrix product is, without its operands.
namespace mylos {

enum class Transpose { no, yes };

/// What is done to C's elements before they are written. A provider without it runs the same kernel afterwards.
enum class EpilogueKind {
  none,
  bias,           ///< c += bias[column]
  bias_gelu,      ///< pre = c + bias[column], kept; c = gelu(pre)
  gelu_gradient,  ///< c *= gelu'(pre)
};

/// C (m, n) = op(A) op(B), with a sum of k terms, as a model lists what it multiplies. A convolution is such a product
/// over the pixels of its result, one of whose matrices is gathered from images and stands nowhere: the forward pass
/// y = patches(x) W^T, the input gradient patches' gradient = dy W, the weight gradient dW = dy^T patches(x). Its
/// operands are (x, W, y), (dy, W, dx) and (dy, x, dW).
struct GemmProduct {
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  std::size_t m = 0, n = 0, k = 0;
  Precision input = Precision::float32, output = Precision::float32;  ///< of A and B; of C
  bool accumulate = false;                                            ///< C += instead of C =
  EpilogueKind epilogue = EpilogueKind::none;
  std::size_t count = 1;  ///< how often a pass has it
  std::string name = {};  ///< "qkv/forward"
  std::optional<Convolution> convolution = {};

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

/// A convolution of so many images, of and into elements of `precision`; the weight gradient is float.
GemmProduct convolution_product(const Convolution& convolution, std::size_t images, Precision precision);

/// The extent that grows with the batch: rows of the product, or images of a convolution.
std::size_t batch_extent(const GemmProduct& product);
/// The same product of at most so many rows or images.
GemmProduct with_batch_extent(GemmProduct product, std::size_t extent);

/// Elements of A, B and C.
struct OperandSizes {
  std::size_t a = 0, b = 0, c = 0;
};
OperandSizes operand_sizes(const GemmProduct& product);

}  // namespace mylos
