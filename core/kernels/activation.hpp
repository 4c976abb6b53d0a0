#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

/// GELU with the exact error function (Hendrycks, Gimpel 2016), and bias gradients. Elementwise and deterministic.
namespace mylos {

/// pre (M, N) += bias (N); y = gelu(pre). y must not alias pre.
template <class T>
void bias_gelu(const ExecutionSpace& space, const ConstVector<T>& bias, const Matrix<T>& pre, const Matrix<T>& y);

/// y (M, N) = gelu(pre). y must not alias pre.
template <class T>
void gelu(const ExecutionSpace& space, const ConstMatrix<T>& pre, const Matrix<T>& y);

/// dy (M, N) *= gelu'(pre); sums (N) += column sums of dy, as add_column_sums computes them; pre = gelu(pre). Reads and
/// writes each element once. The workspace needs column_sum_workspace floats.
template <class T>
void gelu_backward(const ExecutionSpace& space, const Matrix<T>& pre, const Matrix<T>& dy, const Vector<float>& sums,
                   const Vector<float>& workspace);

/// x (M, N) += bias (N).
template <class T>
void add_bias(const ExecutionSpace& space, const ConstVector<T>& bias, const Matrix<T>& x);

/// sums (N) += column sums of x (M, N), over fixed blocks of rows. The workspace needs column_sum_workspace floats.
template <class T>
void add_column_sums(const ExecutionSpace& space, const ConstMatrix<T>& x, const Vector<float>& sums,
                     const Vector<float>& workspace);

/// to = from, converted to the other element type. Both have the same extents.
template <class From, class To>
void convert(const ExecutionSpace& space, const ConstVector<From>& from, const Vector<To>& to);

}  // namespace mylos
