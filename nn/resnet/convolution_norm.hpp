#pragma once

#include "core/kernels/batch_norm.hpp"
#include "nn/layers/convolution.hpp"

#include <string>

/// A convolution without bias, and the BatchNorm behind it. Its result is kept as it is; what normalises it is fused
/// with what follows.
namespace mylos::nn {

inline constexpr float batch_norm_epsilon = 1e-5f;

struct ConvolutionNorm {
  ConvolutionLayer convolution;
  std::size_t norm_weight = 0, norm_bias = 0;            ///< rows
  std::size_t running_mean = 0, running_variance = 0;    ///< state tensors
  std::size_t observed_mean = 0, observed_variance = 0;  ///< columns of Pass::observed

  const ConvolutionShape& shape() const { return convolution.shape; }
};

/// Adds rows `name`.convolution.weight (out, kh, kw, in) and `name`.normalization.{weight, bias} (out), and the states
/// running_mean, running_var (out) and num_batches_tracked (1), to the current unit.
void add_convolution_norm_rows(ParameterTable::Builder& builder, const std::string& name,
                               const ConvolutionShape& shape);
ConvolutionNorm find_convolution_norm(const ParameterTable& table, const std::string& name,
                                      const ConvolutionShape& shape);

/// What all layers of a pass over images share.
struct ImagesPass {
  const Pass& pass;
  ConstVector<std::size_t> starts;       ///< (S+1) first image of each group
  ConstVector<std::uint32_t> of_images;  ///< (T)
  ParameterStore::Purpose purpose;
  Vector<float> norm_workspace;  ///< of the largest layer, for training

  std::size_t images() const { return of_images.size(); }
  ImageGroups groups(const ConvolutionNorm& layer) const { return {starts, of_images, layer.shape().out_pixels()}; }
};

/// What the backward pass needs of a layer.
template <class T>
struct ConvolutionNormSaved {
  Matrix<T> result;                ///< (T OH OW, out) of the convolution
  BatchNormStatistics statistics;  ///< (S, out); (1, out) in prediction
};

/// saved.result = the convolution of x (T H W, in), and its statistics: in training those of its groups, which are
/// observed, else the running ones.
template <class T>
void convolution_norm_forward(const ImagesPass& images, const ConvolutionNorm& layer, const ConstMatrix<T>& x,
                              const ConvolutionNormSaved<T>& saved);
/// The saved result with its normalisation.
template <class T>
BatchNormInput<T> normalization_of(const ImagesPass& images, const ConvolutionNorm& layer,
                                   const ConvolutionNormSaved<T>& saved);
BatchNormGradients norm_gradients(const ImagesPass& images, const ConvolutionNorm& layer);

/// Floating-point operations of one of its passes over an image.
double convolution_flops(const ConvolutionShape& shape);

}  // namespace mylos::nn
