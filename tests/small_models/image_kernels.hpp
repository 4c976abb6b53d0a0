#pragma once

#include "core/device.hpp"

/// What convolutions over small images are made of. A batch's rows are pixels, image after image, line after line; all
/// images have one size. Deterministic: gradients are gathered, not scattered.
namespace mylos::small_models {

struct ImageSize {
  std::size_t height = 0;
  std::size_t width = 0;

  std::size_t pixels() const { return height * width; }
  ImageSize pooled(std::size_t window) const { return {height / window, width / window}; }
};

/// Pixels of a 3 x 3 neighbourhood.
inline constexpr std::size_t neighbours = 9;

/// columns (T, 9 C) = each pixel's 3 x 3 neighbourhood in x (T, C), zero outside of the image: a convolution is then a
/// product with a (C', 9 C) weight.
void gather_neighbours(const ExecutionSpace& space, const ImageSize& size, const ConstMatrix<float>& x,
                       const Matrix<float>& columns);
/// dx (T, C) = gradient of x from that of columns (T, 9 C).
void gather_neighbours_backward(const ExecutionSpace& space, const ImageSize& size, const ConstMatrix<float>& dcolumns,
                                const Matrix<float>& dx);

/// y (T / (h w), C) = mean of each window of h x w = `window` pixels, which divides the image.
void average_pool(const ExecutionSpace& space, const ImageSize& size, const ImageSize& window,
                  const ConstMatrix<float>& x, const Matrix<float>& y);
/// dx (T, C) from dy.
void average_pool_backward(const ExecutionSpace& space, const ImageSize& size, const ImageSize& window,
                           const ConstMatrix<float>& dy, const Matrix<float>& dx);

}  // namespace mylos::small_models
