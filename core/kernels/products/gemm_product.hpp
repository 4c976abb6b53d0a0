#pragma once

#include "core/base/precision.hpp"
#include "core/kernels/products/convolution_shape.hpp"

#include <cstddef>
#include <optional>
#include <string>

/// The description of a matrix product, without its operands.
namespace mylos {

enum class Transpose { no, yes };

/// An operation on C's elements before they are written. Providers that do not support it run the same kernel
/// afterwards.
enum class EpilogueKind {
  none,
  bias,       ///< c += bias[column]
  bias_gelu,  ///< pre = c + bias[column], stored; c = gelu(pre)
};

/// C (m, n) = op(A) op(B), with k terms per sum, as listed by a model. A convolution is such a product over its output
/// pixels, with one matrix gathered from images and never stored: forward y = patches(x) W^T, input gradient (gradient
/// of patches) = dy W, weight gradient dW = dy^T patches(x). Its operands are (x, W, y), (dy, W, dx) and (dy, x, dW).
struct GemmProduct {
  Transpose transpose_a = Transpose::no, transpose_b = Transpose::no;
  std::size_t m = 0, n = 0, k = 0;
  Precision input = Precision::float32, output = Precision::float32;  ///< types of A and B; of C
  bool accumulate = false;                                            ///< C += instead of C =
  EpilogueKind epilogue = EpilogueKind::none;
  std::size_t count = 1;  ///< occurrences per pass
  std::string name = {};  ///< "qkv/forward"
  std::optional<Convolution> convolution = {};

  double flops() const { return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

/// Returns the product of a convolution of `images` images, with operands and result of type `precision`; the weight
/// gradient is float.
GemmProduct convolution_product(const Convolution& convolution, std::size_t images, Precision precision);

/// Returns the extent that grows with the batch: rows of the product, or images of a convolution.
std::size_t batch_extent(const GemmProduct& product);
/// Returns the same product with at most `extent` rows or images.
GemmProduct with_batch_extent(GemmProduct product, std::size_t extent);

/// Numbers of elements of A, B and C.
struct OperandSizes {
  std::size_t a = 0, b = 0, c = 0;
};
OperandSizes operand_sizes(const GemmProduct& product);

}  // namespace mylos
