#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

/// RMSNorm (Zhang, Sennrich 2019), fused with the residual sum before it, over rows of packed sequences:
/// y = z inverse weight with inverse = 1 / sqrt(mean(z^2) + epsilon). Sums are taken in float. Deterministic: column
/// sums go through fixed blocks of rows.
namespace mylos {

/// What RMSNorm's backward pass needs of the forward pass.
template <class T>
struct RmsNormSaved {
  Matrix<T> input;        ///< z (T, H), what was normalised
  Vector<float> inverse;  ///< (T)
};

template <class T>
struct RmsNormParameters {
  ConstVector<T> weight;  ///< (H)
  float epsilon = 1e-5f;
};

/// y (T, H) = RMSNorm(z), after z = saved.input += residual (T, H). Where the residual has no extent, z is there
/// already. The statistics are those of z as it is stored, so that normalising a stored z gives the same bits.
template <class T>
void residual_rms_norm(const ExecutionSpace& space, const ConstMatrix<T>& residual,
                       const RmsNormParameters<T>& parameters, const RmsNormSaved<T>& saved, const Matrix<T>& y);

/// y (T, H) = RMSNorm(z) from what the forward pass saved, with the bits that it gave.
template <class T>
void rms_norm_again(const ExecutionSpace& space, const RmsNormParameters<T>& parameters, const RmsNormSaved<T>& saved,
                    const Matrix<T>& y);

/// From dy (T, H): dz (T, H) += gradient of z, and dweight (H) += its column sums. Workspace as column_sum_workspace
/// says.
template <class T>
void rms_norm_backward(const ExecutionSpace& space, const RmsNormParameters<T>& parameters,
                       const RmsNormSaved<T>& saved, const ConstMatrix<T>& dy, const Matrix<T>& dz,
                       const Vector<float>& dweight, const Vector<float>& workspace);

}  // namespace mylos
