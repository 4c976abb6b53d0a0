#pragma once

#include "core/device.hpp"

/// What a Llama-type decoder has that BERT has not. Deterministic: column sums go through fixed blocks of rows.
namespace mylos::small_models {

/// RMSNorm (Zhang, Sennrich 2019): y (T, H) = x inverse weight, inverse (T) = 1 / sqrt(mean(x^2) + epsilon), kept.
void rms_norm(const ExecutionSpace& space, const ConstVector<float>& weight, float epsilon, const ConstMatrix<float>& x,
              const Vector<float>& inverse, const Matrix<float>& y);
/// From dy (T, H): dx (T, H) += and dweight (H) +=. Workspace as column_sum_workspace says.
void rms_norm_backward(const ExecutionSpace& space, const ConstVector<float>& weight, const ConstMatrix<float>& x,
                       const ConstVector<float>& inverse, const ConstMatrix<float>& dy, const Matrix<float>& dx,
                       const Vector<float>& dweight, const Vector<float>& workspace);

/// SwiGLU (Shazeer 2020): y (T, F) = silu(gate) up, for gate_up (T, 2F) = gate beside up and silu(x) = x sigmoid(x).
void swiglu(const ExecutionSpace& space, const ConstMatrix<float>& gate_up, const Matrix<float>& y);
/// dgate_up (T, 2F) from dy (T, F).
void swiglu_backward(const ExecutionSpace& space, const ConstMatrix<float>& gate_up, const ConstMatrix<float>& dy,
                     const Matrix<float>& dgate_up);

/// y (T, H) += x.
void add(const ExecutionSpace& space, const ConstMatrix<float>& x, const Matrix<float>& y);

/// likeliest (T, 1): the column of the largest element of each row, the first of equals.
void largest_column(const ExecutionSpace& space, const ConstMatrix<float>& logits, const Matrix<float>& likeliest);

}  // namespace mylos::small_models
