#pragma once

#include "core/device.hpp"
#include "core/kernels/dropout.hpp"
#include "core/numeric.hpp"

/// LayerNorm fused with what surrounds it in a transformer (Ba, Kiros, Hinton 2016), over rows of packed sequences.
/// Deterministic: column sums go through fixed blocks of rows.
namespace mylos {

/// What LayerNorm's backward pass needs of the forward pass.
template <class T>
struct LayerNormSaved {
  Matrix<T> input;        ///< z (T, H), what was normalised
  Vector<float> mean;     ///< (T)
  Vector<float> inverse;  ///< (T) 1 / sqrt(variance + epsilon)
};

template <class T>
struct LayerNormParameters {
  ConstVector<T> weight;  ///< (H)
  ConstVector<T> bias;    ///< (H)
  float epsilon = 1e-12f;
};

/// Floats of workspace that the backward kernels take for `columns` columns and `rows` rows: three partial sums a
/// block.
std::size_t column_sum_workspace(std::size_t rows, std::size_t columns);

/// z = residual + dropout(x + bias), y = LayerNorm(z), for x, residual, y (T, H) and bias (H). z = saved.input may be
/// x.
template <class T>
void bias_dropout_residual_layer_norm(const ExecutionSpace& space, const DropoutKey& dropout, const DropoutRows& rows,
                                      const ConstMatrix<T>& x, const ConstVector<T>& bias,
                                      const ConstMatrix<T>& residual, const LayerNormParameters<T>& parameters,
                                      const LayerNormSaved<T>& saved, const Matrix<T>& y);

/// From dy (T, H): dresidual (T, H) = gradient of z, dx (T, H) = that through dropout (may be dresidual where dropout
/// is off), and dweight, dbias_norm, dbias (H) += their column sums.
template <class T>
void bias_dropout_residual_layer_norm_backward(const ExecutionSpace& space, const DropoutKey& dropout,
                                               const DropoutRows& rows, const ConstMatrix<T>& dy,
                                               const LayerNormParameters<T>& parameters, const LayerNormSaved<T>& saved,
                                               const Matrix<T>& dresidual, const Matrix<T>& dx,
                                               const Vector<float>& dweight, const Vector<float>& dbias_norm,
                                               const Vector<float>& dbias, const Vector<float>& workspace);

/// y (T, H) = LayerNorm(z) from what the forward pass saved, with the bits that it gave.
template <class T>
void layer_norm_again(const ExecutionSpace& space, const LayerNormParameters<T>& parameters,
                      const LayerNormSaved<T>& saved, const Matrix<T>& y);

/// y = dropout(LayerNorm(z)) for z = saved.input (T, H), which is there already.
template <class T>
void layer_norm_dropout(const ExecutionSpace& space, const DropoutKey& dropout, const DropoutRows& rows,
                        const LayerNormParameters<T>& parameters, const LayerNormSaved<T>& saved, const Matrix<T>& y);

/// From dy (T, H): dz (T, H), and dweight, dbias (H) += their column sums. dz may be dy.
template <class T>
void layer_norm_dropout_backward(const ExecutionSpace& space, const DropoutKey& dropout, const DropoutRows& rows,
                                 const ConstMatrix<T>& dy, const LayerNormParameters<T>& parameters,
                                 const LayerNormSaved<T>& saved, const Matrix<T>& dz, const Vector<float>& dweight,
                                 const Vector<float>& dbias, const Vector<float>& workspace);

}  // namespace mylos
