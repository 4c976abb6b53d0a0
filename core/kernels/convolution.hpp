#pragma once

#include "core/device.hpp"
#include "core/kernels/convolution_shape.hpp"
#include "core/kernels/gemm.hpp"

/// Convolutions of images, by the providers of matrix products. Sums are float in every precision; the bits are the
/// same for any number of threads that a provider gives the same bits for.
///
/// The portable computation (core/kernels/gathered_convolution.hpp) gathers blocks of rows, whose number depends on the
/// shape alone, and multiplies them. An image that fills a block or more has the same bits whatever other images are in
/// the call; of smaller images several share a block, and the bits are as independent as the provider's rows are of the
/// number of rows. Other computations than the portable one say so of theirs.
namespace mylos {

/// y (N OH OW, out) = the convolution of x (N H W, in) with weight (out, kernel_height kernel_width in). Errors, here
/// and below: std::invalid_argument with all sizes where they do not fit.
template <class T>
void convolve(const ExecutionSpace& space, const Gemm& gemm, const ConvolutionShape& shape, const ConstMatrix<T>& x,
              const ConstMatrix<T>& weight, const Matrix<T>& y);

/// dx (N H W, in) from dy (N OH OW, out). Every element of dx is written.
template <class T>
void convolve_input_gradient(const ExecutionSpace& space, const Gemm& gemm, const ConvolutionShape& shape,
                             const ConstMatrix<T>& dy, const ConstMatrix<T>& weight, const Matrix<T>& dx);

/// dweight (out, kernel_height kernel_width in) = the gradient of x and dy + beta dweight; beta is 0 or 1.
template <class T>
void convolve_weight_gradient(const ExecutionSpace& space, const Gemm& gemm, const ConvolutionShape& shape,
                              const ConstMatrix<T>& x, const ConstMatrix<T>& dy, float beta,
                              const Matrix<float>& dweight);

}  // namespace mylos
