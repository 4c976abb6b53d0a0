#include "core/kernels/products/float_convolution.hpp"

#include "core/kernels/activation.hpp"

#include <algorithm>

namespace mylos {
namespace {

/// Bytes of float copies of images and results per block, but at least one image.
constexpr std::size_t float_block_bytes = std::size_t{16} << 20;

std::size_t images_at_once(const ConvolutionShape& shape) {
  const std::size_t image = shape.pixels() * shape.in + shape.out_pixels() * shape.out;
  return std::max<std::size_t>(float_block_bytes / (image * sizeof(float)), 1);
}

bool is_widened(const GemmProduct& product) { return product.convolution && product.input != Precision::float32; }

GemmProduct widened_block(GemmProduct product) {
  product.input = product.output = Precision::float32;
  return with_batch_extent(product, images_at_once(product.convolution->shape));
}

void widen(const ExecutionSpace& space, Precision precision, const void* from, std::size_t size, void* to) {
  with_type(precision, [&]<class T>(T) {
    convert<T, float>(space, ConstVector<T>(static_cast<const T*>(from), size),
                      Vector<float>(static_cast<float*>(to), size));
  });
}

void narrow(const ExecutionSpace& space, Precision precision, const void* from, std::size_t size, void* to) {
  with_type(precision, [&]<class T>(T) {
    convert<float, T>(space, ConstVector<float>(static_cast<const float*>(from), size),
                      Vector<T>(static_cast<T*>(to), size));
  });
}

}  // namespace

void FloatConvolution::compute(const ExecutionSpace& space, const GemmCall& call, const Convolve& convolve) {
  const Convolution& convolution = *call.convolution;
  const GemmProduct whole = product_of(call), block = widened_block(whole);
  const OperandSizes sizes = operand_sizes(block);
  const std::size_t images = batch_extent(whole), at_once = batch_extent(block);
  const bool sums_images = convolution.pass == ConvolutionPass::weight_gradient;
  float* const a = static_cast<float*>(a_.get(sizes.a * sizeof(float)));
  float* const b = static_cast<float*>(b_.get(sizes.b * sizeof(float)));
  float* const c = sums_images ? nullptr : static_cast<float*>(c_.get(sizes.c * sizeof(float)));
  if (!sums_images) widen(space, call.input, call.b, sizes.b, b);
  for (std::size_t image = 0; image < images; image += at_once) {
    const GemmProduct part = with_batch_extent(block, images - image);
    const OperandSizes part_sizes = operand_sizes(part);
    const auto from = [&](std::size_t size) { return size / at_once * image; };  // elements before this part
    GemmCall product = call;
    product.m = part.m;
    product.k = part.k;
    product.input = product.output = Precision::float32;
    product.a = a;
    product.b = b;
    widen(space, call.input, element_of(call.a, from(sizes.a), call.input), part_sizes.a, a);
    if (sums_images) {
      widen(space, call.input, element_of(call.b, from(sizes.b), call.input), part_sizes.b, b);
      product.beta = image == 0 ? call.beta : 1.0f;
      convolve(product);
    } else {
      product.c = c;
      convolve(product);
      narrow(space, call.output, c, part_sizes.c, element_of(call.c, from(sizes.c), call.output));
    }
  }
}

std::vector<GemmProduct> FloatConvolution::widened(std::span<const GemmProduct> products) {
  std::vector<GemmProduct> blocks;
  for (const GemmProduct& product : products) {
    if (is_widened(product)) blocks.push_back(widened_block(product));
  }
  return blocks;
}

std::size_t FloatConvolution::bytes(std::span<const GemmProduct> products) {
  OperandSizes most;
  for (const GemmProduct& block : widened(products)) {
    const OperandSizes sizes = operand_sizes(block);
    most.a = std::max(most.a, sizes.a);
    most.b = std::max(most.b, sizes.b);
    if (block.convolution->pass != ConvolutionPass::weight_gradient) most.c = std::max(most.c, sizes.c);
  }
  return (most.a + most.b + most.c) * sizeof(float);
}

}  // namespace mylos
