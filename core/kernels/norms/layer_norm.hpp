#pragma once

#include "core/device.hpp"
#include "core/kernels/dropout.hpp"
#include "core/numeric.hpp"

/// LayerNorm (Ba, Kiros, Hinton 2016), fused with adjacent operations of a transformer, over rows of packed sequences.
/// Deterministic: column sums run over fixed blocks of rows.
namespace mylos {

/// Values saved by the forward pass for LayerNorm's backward pass.
template <class T>
struct LayerNormSaved {
  Matrix<T> input;        ///< z (T, H), the input of the normalisation
  Vector<float> mean;     ///< (T)
  Vector<float> inverse;  ///< (T) 1 / sqrt(variance + epsilon)
};

template <class T>
struct LayerNormParameters {
  ConstVector<T> weight;  ///< (H)
  ConstVector<T> bias;    ///< (H)
  float epsilon = 1e-12f;
};

/// Floats of workspace that the backward kernels need for `rows` rows and `columns` columns: three partial sums per
/// block.
std::size_t column_sum_workspace(std::size_t rows, std::size_t columns);

/// z = residual + dropout(x + bias), y = LayerNorm(z), for x, residual, y (T, H) and bias (H). z = saved.input may
/// alias x.
template <class T>
void bias_dropout_residual_layer_norm(const ExecutionSpace& space, const DropoutKey& dropout, const DropoutRows& rows,
                                      const ConstMatrix<T>& x, const ConstVector<T>& bias,
                                      const ConstMatrix<T>& residual, const LayerNormParameters<T>& parameters,
                                      const LayerNormSaved<T>& saved, const Matrix<T>& y);

/// Computes, from dy (T, H): dresidual (T, H) = gradient of z, dx (T, H) = the same through dropout (may alias
/// dresidual if dropout is off), and dweight, dbias_norm, dbias (H) += their column sums.
template <class T>
void bias_dropout_residual_layer_norm_backward(const ExecutionSpace& space, const DropoutKey& dropout,
                                               const DropoutRows& rows, const ConstMatrix<T>& dy,
                                               const LayerNormParameters<T>& parameters, const LayerNormSaved<T>& saved,
                                               const Matrix<T>& dresidual, const Matrix<T>& dx,
                                               const Vector<float>& dweight, const Vector<float>& dbias_norm,
                                               const Vector<float>& dbias, const Vector<float>& workspace);

/// Recomputes y (T, H) = LayerNorm(z) from the values saved by the forward pass, with identical bits.
template <class T>
void layer_norm_again(const ExecutionSpace& space, const LayerNormParameters<T>& parameters,
                      const LayerNormSaved<T>& saved, const Matrix<T>& y);

/// y = dropout(LayerNorm(z)), where z = saved.input (T, H) must be set.
template <class T>
void layer_norm_dropout(const ExecutionSpace& space, const DropoutKey& dropout, const DropoutRows& rows,
                        const LayerNormParameters<T>& parameters, const LayerNormSaved<T>& saved, const Matrix<T>& y);

/// Computes, from dy (T, H): dz (T, H), and dweight, dbias (H) += their column sums. dz may alias dy.
template <class T>
void layer_norm_dropout_backward(const ExecutionSpace& space, const DropoutKey& dropout, const DropoutRows& rows,
                                 const ConstMatrix<T>& dy, const LayerNormParameters<T>& parameters,
                                 const LayerNormSaved<T>& saved, const Matrix<T>& dz, const Vector<float>& dweight,
                                 const Vector<float>& dbias, const Vector<float>& workspace);

}  // namespace mylos
