#include "app/bench/product_element.hpp"

#include <optional>

namespace mylos::app {
namespace {

/// Returns the pixel of x that pixel `to` of y reads at a tap; nullopt if it is outside the image.
std::optional<std::size_t> pixel_read(const ConvolutionShape& shape, std::size_t to, std::size_t tap) {
  const std::size_t image = to / shape.out_pixels(), row = to % shape.out_pixels() / shape.out_width(),
                    column = to % shape.out_width();
  // Negative values wrap around to numbers far beyond the image.
  const std::size_t h = row * shape.stride + tap / shape.kernel_width - shape.padding,
                    w = column * shape.stride + tap % shape.kernel_width - shape.padding;
  if (h >= shape.height || w >= shape.width) return std::nullopt;
  return (image * shape.height + h) * shape.width + w;
}

/// Returns the pixel of y that reads pixel `from` of x at a tap; nullopt if there is none.
std::optional<std::size_t> pixel_reading(const ConvolutionShape& shape, std::size_t from, std::size_t tap) {
  const std::size_t image = from / shape.pixels(), in_image = from % shape.pixels();
  const std::size_t h = in_image / shape.width + shape.padding - tap / shape.kernel_width,
                    w = in_image % shape.width + shape.padding - tap % shape.kernel_width;
  if (h % shape.stride != 0 || w % shape.stride != 0 || h / shape.stride >= shape.out_height() ||
      w / shape.stride >= shape.out_width()) {
    return std::nullopt;
  }
  return image * shape.out_pixels() + h / shape.stride * shape.out_width() + w / shape.stride;
}

std::size_t taps_of(const ConvolutionShape& shape) { return shape.kernel_height * shape.kernel_width; }

double forward_element(const ConvolutionShape& shape, std::size_t row, std::size_t output, const ElementOf& x,
                       const ElementOf& weight) {
  double sum = 0.0;
  for (std::size_t tap = 0; tap < taps_of(shape); ++tap) {
    const auto pixel = pixel_read(shape, row, tap);
    for (std::size_t i = 0; pixel && i < shape.in; ++i) {
      sum += x(*pixel * shape.in + i) * weight(output * shape.terms() + tap * shape.in + i);
    }
  }
  return sum;
}

double input_gradient_element(const ConvolutionShape& shape, std::size_t row, std::size_t input, const ElementOf& dy,
                              const ElementOf& weight) {
  double sum = 0.0;
  for (std::size_t tap = 0; tap < taps_of(shape); ++tap) {
    const auto pixel = pixel_reading(shape, row, tap);
    for (std::size_t o = 0; pixel && o < shape.out; ++o) {
      sum += dy(*pixel * shape.out + o) * weight(o * shape.terms() + tap * shape.in + input);
    }
  }
  return sum;
}

double weight_gradient_element(const ConvolutionShape& shape, std::size_t pixels, std::size_t output,
                               std::size_t column, const ElementOf& dy, const ElementOf& x) {
  double sum = 0.0;
  for (std::size_t row = 0; row < pixels; ++row) {
    const auto pixel = pixel_read(shape, row, column / shape.in);
    if (pixel) sum += dy(row * shape.out + output) * x(*pixel * shape.in + column % shape.in);
  }
  return sum;
}

}  // namespace

std::size_t result_columns(const GemmProduct& product) {
  const bool is_image = product.convolution.has_value() && product.convolution->pass == ConvolutionPass::input_gradient;
  return is_image ? product.convolution->shape.in : product.n;
}

std::size_t terms_of(const GemmProduct& product) {
  const bool is_image = product.convolution.has_value() && product.convolution->pass == ConvolutionPass::input_gradient;
  return is_image ? taps_of(product.convolution->shape) * product.k : product.k;
}

double product_element(const GemmProduct& product, std::size_t row, std::size_t column, const ElementOf& a,
                       const ElementOf& b) {
  if (product.convolution) {
    const auto& [shape, pass] = *product.convolution;
    if (pass == ConvolutionPass::forward) return forward_element(shape, row, column, a, b);
    if (pass == ConvolutionPass::input_gradient) return input_gradient_element(shape, row, column, a, b);
    return weight_gradient_element(shape, product.k, row, column, a, b);
  }
  const bool ta = product.transpose_a == Transpose::yes, tb = product.transpose_b == Transpose::yes;
  double sum = 0.0;
  for (std::size_t i = 0; i < product.k; ++i) {
    sum += a(ta ? i * product.m + row : row * product.k + i) * b(tb ? column * product.k + i : i * product.n + column);
  }
  return sum;
}

}  // namespace mylos::app
