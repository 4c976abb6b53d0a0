#pragma once

#include <compare>
#include <cstddef>

/// What a convolution of images is, without its operands. Images are NHWC: (N H W, C), a row for each pixel. Weights
/// are (out, kernel_height kernel_width in).
namespace mylos {

struct ConvolutionShape {
  std::size_t height = 0, width = 0;  ///< of the images that are read
  std::size_t in = 0, out = 0;        ///< channels
  std::size_t kernel_height = 1, kernel_width = 1;
  std::size_t stride = 1, padding = 0;  ///< the same in both directions and on all sides

  std::size_t out_height() const { return (height + 2 * padding - kernel_height) / stride + 1; }
  std::size_t out_width() const { return (width + 2 * padding - kernel_width) / stride + 1; }
  std::size_t pixels() const { return height * width; }
  std::size_t out_pixels() const { return out_height() * out_width(); }
  /// Terms of the sum for one element of the result.
  std::size_t terms() const { return kernel_height * kernel_width * in; }
  /// Each pixel of the result is made of the same pixel alone: the convolution is a plain product.
  bool is_pointwise() const { return kernel_height == 1 && kernel_width == 1 && stride == 1 && padding == 0; }

  auto operator<=>(const ConvolutionShape&) const = default;
};

enum class ConvolutionPass { forward, input_gradient, weight_gradient };

/// A pass of a convolution, as a product is told what it is.
struct Convolution {
  ConvolutionShape shape;
  ConvolutionPass pass = ConvolutionPass::forward;

  auto operator<=>(const Convolution&) const = default;
};

}  // namespace mylos
