#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

#include <cstdint>

/// Pooling over images in NHWC: a matrix (N H W, C) has one row per pixel. Deterministic: gradients are gathered.
namespace mylos {

/// Windows of `kernel` x `kernel` pixels, `stride` apart; padding pixels are ignored.
struct PoolingShape {
  std::size_t height = 0, width = 0;
  std::size_t kernel = 3, stride = 2, padding = 1;

  std::size_t out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::size_t out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
};

/// y (N OH OW, C) = maximum of each window of x (N H W, C). `taken` (the same shape) = its row-major index in the
/// window, the first if several are equal; not written if it has no extent. A NaN counts as larger than any number.
template <class T>
void max_pool(const ExecutionSpace& space, const PoolingShape& shape, const ConstMatrix<T>& x, const Matrix<T>& y,
              const Matrix<std::uint8_t>& taken);

/// dx (N H W, C) = the gradient of x from that of y, dy + also; `also` may have no extent. Only adjacent windows may
/// overlap: kernel <= 2 stride.
template <class T>
void max_pool_backward(const ExecutionSpace& space, const PoolingShape& shape, const Matrix<const std::uint8_t>& taken,
                       const ConstMatrix<T>& dy, const ConstMatrix<T>& also, const Matrix<T>& dx);

/// y (N, C) = the mean over each image of x (N * pixels, C).
template <class T>
void average_pool(const ExecutionSpace& space, const ConstMatrix<T>& x, const Matrix<T>& y);

/// dx (N * pixels, C) from dy (N, C).
template <class T>
void average_pool_backward(const ExecutionSpace& space, const ConstMatrix<T>& dy, const Matrix<T>& dx);

}  // namespace mylos
