#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

#include <cstdint>

/// BatchNorm (Ioffe, Szegedy 2015) fused with ReLU and the residual sum, over images in NHWC. A matrix (R, C) has one
/// row per pixel, R = T * pixels for T images, and BN(x) = (x - mean) inverse weight + bias per channel, with inverse =
/// 1 / sqrt(variance + epsilon).
///
/// In training, statistics are computed per group of images, so that they depend neither on the micro-batch nor on the
/// number of ranks. Deterministic: sums run over fixed blocks of an image's rows, and the results for a group have the
/// same bits regardless of the other groups in the call.
namespace mylos {

/// The groups of images that are normalised together.
struct ImageGroups {
  ConstVector<std::size_t> starts;       ///< (S+1) first image of each group; the last is T
  ConstVector<std::uint32_t> of_images;  ///< (T) group of each image
  std::size_t pixels = 0;                ///< pixels per image

  std::size_t count() const { return starts.size() - 1; }
  std::size_t images() const { return of_images.size(); }
};

/// Statistics per group (S, C), or (1, C) if all images use the running statistics.
struct BatchNormStatistics {
  Matrix<float> mean;
  Matrix<float> inverse;
};

/// An array and its normalisation.
template <class T>
struct BatchNormInput {
  ConstMatrix<T> x;  ///< (R, C)
  BatchNormStatistics statistics;
  ConstVector<T> weight;  ///< (C)
  ConstVector<T> bias;    ///< (C)
};

/// Output of each group's statistics, for the running statistics: row s of `values` is group s.
struct BatchNormObserved {
  Matrix<float> values;      ///< (S, any); nothing is written if it has no extent
  std::size_t mean = 0;      ///< first of C columns
  std::size_t variance = 0;  ///< first of C columns for the unbiased variance (biased if there is only one value)
};

/// Floats of workspace that the functions below need for one layer.
std::size_t batch_norm_workspace(std::size_t groups, std::size_t images, std::size_t pixels, std::size_t channels);

/// statistics (S, C) = statistics of each group of x (R, C). The variance is computed from differences to the mean, so
/// that a large mean costs no precision.
template <class T>
void batch_norm_statistics(const ExecutionSpace& space, const ImageGroups& groups, const ConstMatrix<T>& x,
                           float epsilon, const BatchNormStatistics& statistics, const BatchNormObserved& observed,
                           const Vector<float>& workspace);

/// statistics (1, C) = running statistics, from mean (C) and variance (C).
void running_batch_norm_statistics(const ExecutionSpace& space, const ConstVector<float>& mean,
                                   const ConstVector<float>& variance, float epsilon,
                                   const BatchNormStatistics& statistics);

/// y (R, C) = relu(BN(x)). y may alias x.
template <class T>
void batch_norm_relu(const ExecutionSpace& space, const ImageGroups& groups, const BatchNormInput<T>& input,
                     const Matrix<T>& y);

/// y (R, C) = relu(BN(x) + residual), for a residual (R, C). y may alias x or the residual.
template <class T>
void batch_norm_residual_relu(const ExecutionSpace& space, const ImageGroups& groups, const BatchNormInput<T>& input,
                              const ConstMatrix<T>& residual, const Matrix<T>& y);

/// y (R, C) = relu(BN(x) + BN'(x')), for a shortcut x' (R, C) with its own normalisation. y may alias x or x'.
template <class T>
void batch_norm_shortcut_relu(const ExecutionSpace& space, const ImageGroups& groups, const BatchNormInput<T>& input,
                              const BatchNormInput<T>& shortcut, const Matrix<T>& y);

/// Gradients of weight and bias (C), accumulated.
struct BatchNormGradients {
  Vector<float> dweight;
  Vector<float> dbias;
};

/// Computes, from dy (R, C) = gradient of BN(x): dx (R, C) = gradient of x, and dweight, dbias +=. dx may alias x or
/// dy.
template <class T>
void batch_norm_backward(const ExecutionSpace& space, const ImageGroups& groups, const BatchNormInput<T>& input,
                         const ConstMatrix<T>& dy, const Matrix<T>& dx, const BatchNormGradients& gradients,
                         const Vector<float>& workspace);

/// The same through y = relu(BN(x)), which is recomputed. If `also` (R, C) has an extent, y's gradient is dy + also. dy
/// becomes the gradient of BN(x).
template <class T>
void batch_norm_relu_backward(const ExecutionSpace& space, const ImageGroups& groups, const BatchNormInput<T>& input,
                              const Matrix<T>& dy, const ConstMatrix<T>& also, const Matrix<T>& dx,
                              const BatchNormGradients& gradients, const Vector<float>& workspace);

/// The same through y (R, C) = relu(BN(x) + any residual): dy becomes the gradient of BN(x) and of the residual.
template <class T>
void batch_norm_sum_relu_backward(const ExecutionSpace& space, const ImageGroups& groups,
                                  const BatchNormInput<T>& input, const ConstMatrix<T>& y, const Matrix<T>& dy,
                                  const ConstMatrix<T>& also, const Matrix<T>& dx, const BatchNormGradients& gradients,
                                  const Vector<float>& workspace);

}  // namespace mylos
