#pragma once

#include "core/device.hpp"

/// The kernels of a Llama-type decoder that BERT lacks. Deterministic: column sums use fixed blocks of rows.
namespace mylos::small_models {

/// RMSNorm (Zhang, Sennrich 2019): y (T, H) = x inverse weight, with inverse (T) = 1 / sqrt(mean(x^2) + epsilon) saved.
void rms_norm(const ExecutionSpace& space, const ConstVector<float>& weight, float epsilon, const ConstMatrix<float>& x,
              const Vector<float>& inverse, const Matrix<float>& y);
/// Computes dx (T, H) += and dweight (H) += from dy (T, H). For the size of `workspace` see column_sum_workspace.
void rms_norm_backward(const ExecutionSpace& space, const ConstVector<float>& weight, const ConstMatrix<float>& x,
                       const ConstVector<float>& inverse, const ConstMatrix<float>& dy, const Matrix<float>& dx,
                       const Vector<float>& dweight, const Vector<float>& workspace);

/// SwiGLU (Shazeer 2020): y (T, F) = silu(gate) up, with gate and up side by side in gate_up (T, 2F) and silu(x) = x
/// sigmoid(x).
void swiglu(const ExecutionSpace& space, const ConstMatrix<float>& gate_up, const Matrix<float>& y);
/// Computes dgate_up (T, 2F) from dy (T, F).
void swiglu_backward(const ExecutionSpace& space, const ConstMatrix<float>& gate_up, const ConstMatrix<float>& dy,
                     const Matrix<float>& dgate_up);

/// Computes y (T, H) += x.
void add(const ExecutionSpace& space, const ConstMatrix<float>& x, const Matrix<float>& y);

}  // namespace mylos::small_models
