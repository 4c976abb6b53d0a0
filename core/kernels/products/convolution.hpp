#pragma once

#include "core/device.hpp"
#include "core/kernels/products/convolution_shape.hpp"
#include "core/kernels/products/gemm.hpp"

/// Convolutions of images, computed by the providers of matrix products. Sums are float in every precision. The bits do
/// not depend on the number of threads if those of the provider's products do not.
///
/// The portable computation (core/kernels/products/gathered_convolution.hpp) gathers blocks of rows, whose size depends
/// on the shape alone, and multiplies them. An image of at least one block has the same bits regardless of the other
/// images in the call. Several smaller images can be in one block; their bits are as independent of each other as the
/// provider's rows are of the number of rows. Other computations document their own guarantees.
namespace mylos {

/// y (N OH OW, out) = the convolution of x (N H W, in) with weight (out, kernel_height kernel_width in). Errors, here
/// and below: std::invalid_argument with all sizes if they do not match.
template <class T>
void convolve(const ExecutionSpace& space, const Gemm& gemm, const ConvolutionShape& shape, const ConstMatrix<T>& x,
              const ConstMatrix<T>& weight, const Matrix<T>& y);

/// dx (N H W, in) from dy (N OH OW, out). Every element of dx is written.
template <class T>
void convolve_input_gradient(const ExecutionSpace& space, const Gemm& gemm, const ConvolutionShape& shape,
                             const ConstMatrix<T>& dy, const ConstMatrix<T>& weight, const Matrix<T>& dx);

/// dweight (out, kernel_height kernel_width in) = gradient from x and dy + beta dweight; beta is 0 or 1.
template <class T>
void convolve_weight_gradient(const ExecutionSpace& space, const Gemm& gemm, const ConvolutionShape& shape,
                              const ConstMatrix<T>& x, const ConstMatrix<T>& dy, float beta,
                              const Matrix<float>& dweight);

}  // namespace mylos
