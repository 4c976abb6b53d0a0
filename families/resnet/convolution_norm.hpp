#pragma once

#include "core/kernels/norms/batch_norm.hpp"
#include "nn/layers/convolution.hpp"

#include <string>

/// A convolution without bias, followed by BatchNorm. The convolution's result is stored; normalisation is fused with
/// the operation that follows.
namespace mylos::families {

inline constexpr float batch_norm_epsilon = 1e-5f;

struct ConvolutionNorm {
  nn::ConvolutionLayer convolution;
  std::size_t norm_weight = 0, norm_bias = 0;            ///< indices of the parameter tensors
  std::size_t running_mean = 0, running_variance = 0;    ///< indices of the state tensors
  std::size_t observed_mean = 0, observed_variance = 0;  ///< columns of Pass::observed

  const ConvolutionShape& shape() const { return convolution.shape; }
};

/// Adds the tensors `name`.convolution.weight (out, kh, kw, in) and `name`.normalization.{weight, bias} (out), and the
/// state tensors running_mean, running_var (out) and num_batches_tracked (1), to the current unit.
void add_convolution_norm_rows(ParameterTable::Builder& builder, const std::string& name,
                               const ConvolutionShape& shape);
ConvolutionNorm find_convolution_norm(const ParameterTable& table, const std::string& name,
                                      const ConvolutionShape& shape);

/// Inputs that all layers of a pass over images share.
struct ImagesPass {
  const nn::Pass& pass;
  ConstVector<std::size_t> starts;       ///< (S+1), first image of each group
  ConstVector<std::uint32_t> of_images;  ///< (T), group of each image
  ParameterStore::Purpose purpose;
  Vector<float> norm_workspace;  ///< for training; sized for the largest layer

  std::size_t images() const { return of_images.size(); }
  ImageGroups groups(const ConvolutionNorm& layer) const { return {starts, of_images, layer.shape().out_pixels()}; }
};

/// Activations and statistics that a layer keeps for its backward pass.
template <class T>
struct ConvolutionNormSaved {
  Matrix<T> result;                ///< (T OH OW, out), output of the convolution
  BatchNormStatistics statistics;  ///< (S, out); (1, out) in prediction
};

/// Computes saved.result, the convolution of x (T H W, in), and saved.statistics. In training these are the statistics
/// of each group, which are also written to Pass::observed; otherwise they are the running statistics.
template <class T>
void convolution_norm_forward(const ImagesPass& images, const ConvolutionNorm& layer, const ConstMatrix<T>& x,
                              const ConvolutionNormSaved<T>& saved);
/// Returns the saved result together with its statistics, weight and bias.
template <class T>
BatchNormInput<T> normalization_of(const ImagesPass& images, const ConvolutionNorm& layer,
                                   const ConvolutionNormSaved<T>& saved);
BatchNormGradients norm_gradients(const ImagesPass& images, const ConvolutionNorm& layer);

/// Returns the floating-point operations of one pass (forward, weight gradient or input gradient) over one image.
double convolution_flops(const ConvolutionShape& shape);

}  // namespace mylos::families
