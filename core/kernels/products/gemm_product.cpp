#include "core/kernels/products/gemm_product.hpp"

#include <algorithm>

namespace mylos {
namespace {

/// Returns the extent along the rows of a batch, or along the output pixels of a convolution.
std::size_t& rows_of(GemmProduct& product) { return product.transpose_a == Transpose::yes ? product.k : product.m; }

}  // namespace

GemmProduct convolution_product(const Convolution& convolution, std::size_t images, Precision precision) {
  const ConvolutionShape& shape = convolution.shape;
  const std::size_t rows = images * shape.out_pixels();
  GemmProduct product{.input = precision, .output = precision, .convolution = convolution};
  switch (convolution.pass) {
    case ConvolutionPass::forward:
      product.transpose_b = Transpose::yes;
      product.m = rows;
      product.n = shape.out;
      product.k = shape.terms();
      break;
    case ConvolutionPass::input_gradient:
      product.m = rows;
      product.n = shape.terms();
      product.k = shape.out;
      break;
    case ConvolutionPass::weight_gradient:
      product.transpose_a = Transpose::yes;
      product.m = shape.out;
      product.n = shape.terms();
      product.k = rows;
      product.output = Precision::float32;
      break;
  }
  return product;
}

std::size_t batch_extent(const GemmProduct& product) {
  GemmProduct copy = product;
  return product.convolution ? rows_of(copy) / product.convolution->shape.out_pixels() : rows_of(copy);
}

GemmProduct with_batch_extent(GemmProduct product, std::size_t extent) {
  const std::size_t kept = std::min(extent, batch_extent(product));
  rows_of(product) = product.convolution ? kept * product.convolution->shape.out_pixels() : kept;
  return product;
}

OperandSizes operand_sizes(const GemmProduct& product) {
  if (!product.convolution) return {product.m * product.k, product.k * product.n, product.m * product.n};
  const ConvolutionShape& shape = product.convolution->shape;
  const std::size_t images = batch_extent(product);
  const std::size_t x = images * shape.pixels() * shape.in, y = images * shape.out_pixels() * shape.out,
                    weight = shape.out * shape.terms();
  switch (product.convolution->pass) {
    case ConvolutionPass::input_gradient:
      return {y, weight, x};
    case ConvolutionPass::weight_gradient:
      return {y, x, weight};
    case ConvolutionPass::forward:
      break;
  }
  return {x, weight, y};
}

}  // namespace mylos
