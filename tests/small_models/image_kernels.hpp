#pragma once

#include "core/device.hpp"

/// Building blocks of convolutions over small images. The rows of a batch are pixels, image by image and line by line;
/// all images have the same size. Deterministic: gradients are gathered, not scattered.
namespace mylos::small_models {

struct ImageSize {
  std::size_t height = 0;
  std::size_t width = 0;

  std::size_t pixels() const { return height * width; }
  ImageSize pooled(std::size_t window) const { return {height / window, width / window}; }
};

/// The number of pixels in a 3 x 3 neighbourhood.
inline constexpr std::size_t neighbours = 9;

/// Computes columns (T, 9 C), each pixel's 3 x 3 neighbourhood in x (T, C), zero outside of the image. A convolution is
/// then a product with a (C', 9 C) weight.
void gather_neighbours(const ExecutionSpace& space, const ImageSize& size, const ConstMatrix<float>& x,
                       const Matrix<float>& columns);
/// Computes dx (T, C) from the gradient of columns (T, 9 C).
void gather_neighbours_backward(const ExecutionSpace& space, const ImageSize& size, const ConstMatrix<float>& dcolumns,
                                const Matrix<float>& dx);

/// Computes y (T / (h w), C), the mean over each window of h x w = `window` pixels, which must divide the image.
void average_pool(const ExecutionSpace& space, const ImageSize& size, const ImageSize& window,
                  const ConstMatrix<float>& x, const Matrix<float>& y);
/// Computes dx (T, C) from dy.
void average_pool_backward(const ExecutionSpace& space, const ImageSize& size, const ImageSize& window,
                           const ConstMatrix<float>& dy, const Matrix<float>& dx);

}  // namespace mylos::small_models
