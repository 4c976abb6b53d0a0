#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

/// RMSNorm (Zhang, Sennrich 2019), fused with the preceding residual sum, over rows of packed sequences: y = z inverse
/// weight with inverse = 1 / sqrt(mean(z^2) + epsilon). Sums are float. Deterministic: column sums run over fixed
/// blocks of rows.
namespace mylos {

/// Values saved by the forward pass for RMSNorm's backward pass.
template <class T>
struct RmsNormSaved {
  Matrix<T> input;        ///< z (T, H), the input of the normalisation
  Vector<float> inverse;  ///< (T)
};

template <class T>
struct RmsNormParameters {
  ConstVector<T> weight;  ///< (H)
  float epsilon = 1e-5f;
};

/// y (T, H) = RMSNorm(z), after z = saved.input += residual (T, H). If the residual has no extent, z is already set.
/// Statistics are computed from the stored z, so that normalising a stored z gives the same bits.
template <class T>
void residual_rms_norm(const ExecutionSpace& space, const ConstMatrix<T>& residual,
                       const RmsNormParameters<T>& parameters, const RmsNormSaved<T>& saved, const Matrix<T>& y);

/// Recomputes y (T, H) = RMSNorm(z) from the values saved by the forward pass, with identical bits.
template <class T>
void rms_norm_again(const ExecutionSpace& space, const RmsNormParameters<T>& parameters, const RmsNormSaved<T>& saved,
                    const Matrix<T>& y);

/// Computes, from dy (T, H): dz (T, H) += gradient of z, and dweight (H) += its column sums. The workspace needs
/// column_sum_workspace floats.
template <class T>
void rms_norm_backward(const ExecutionSpace& space, const RmsNormParameters<T>& parameters,
                       const RmsNormSaved<T>& saved, const ConstMatrix<T>& dy, const Matrix<T>& dz,
                       const Vector<float>& dweight, const Vector<float>& workspace);

}  // namespace mylos
