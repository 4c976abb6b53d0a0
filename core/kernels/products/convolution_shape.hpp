#pragma once

#include <compare>
#include <cstddef>
#include <tuple>

/// The description of a convolution of images, without its operands. Images are NHWC: (N H W, C), one row per pixel.
/// Weights are (out, kernel_height kernel_width in).
namespace mylos {

struct ConvolutionShape {
  std::size_t height = 0, width = 0;  ///< input images
  std::size_t in = 0, out = 0;        ///< channels
  std::size_t kernel_height = 1, kernel_width = 1;
  std::size_t stride = 1, padding = 0;  ///< equal in both directions and on all sides

  std::size_t out_height() const { return (height + 2 * padding - kernel_height) / stride + 1; }
  std::size_t out_width() const { return (width + 2 * padding - kernel_width) / stride + 1; }
  std::size_t pixels() const { return height * width; }
  std::size_t out_pixels() const { return out_height() * out_width(); }
  /// Number of terms in the sum for one output element.
  std::size_t terms() const { return kernel_height * kernel_width * in; }
  /// Returns whether each output pixel depends only on the same input pixel: the convolution is then a plain product.
  bool is_pointwise() const { return kernel_height == 1 && kernel_width == 1 && stride == 1 && padding == 0; }

  auto operator<=>(const ConvolutionShape&) const = default;
};

enum class ConvolutionPass { forward, input_gradient, weight_gradient };

/// One pass of a convolution, as part of the description of a product.
struct Convolution {
  ConvolutionShape shape;
  ConvolutionPass pass = ConvolutionPass::forward;

  auto operator<=>(const Convolution&) const = default;
};
inline auto members(Convolution& convolution) {
  auto& [shape, pass] = convolution;  // does not compile if one is forgotten
  return std::tie(shape, pass);
}

}  // namespace mylos
