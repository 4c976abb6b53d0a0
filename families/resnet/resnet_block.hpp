#pragma once

#include "core/kernels/norms/batch_norm.hpp"
#include "families/resnet/resnet_shape.hpp"
#include "nn/layers/convolution.hpp"

#include <optional>
#include <string>
#include <vector>

/// A residual block: y = relu(F(x) + shortcut(x)), where F is two or three convolutions, each with BatchNorm, with ReLU
/// in between. A block is one unit of the model. It keeps the convolutions' results and y; the arrays between two
/// convolutions are recomputed in the backward pass.
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

/// Arrays of a block. The backward pass overwrites results with their gradients.
template <class T>
struct ResnetBlockMemory {
  std::vector<ConvolutionNormSaved<T>> layers;
  ConvolutionNormSaved<T> shortcut;
  std::vector<Matrix<T>> inner;  ///< input of each convolution after the first; may alias the previous convolution's
                                 ///< result
  Matrix<T> y;                   ///< (T OH OW, out)
};

/// A gradient given as the sum of two arrays; `also` may be empty.
template <class T>
struct GradientSum {
  Matrix<T> dy;
  Matrix<T> also;
};

/// Memory for the results of a block's backward pass. If the shortcut is the identity, the second part of the result is
/// the incoming gradient.dy, and `also` is not used.
template <class T>
struct GradientTargets {
  T* inner;  ///< input of a convolution, then its gradient; may alias gradient.also
  T* dy;     ///< may alias `inner`
  T* also;   ///< may alias gradient.dy
};

template <class T>
class ResnetBlock {
 public:
  /// Adds the tensors of a block to the current unit, with Hugging Face's names below `name`.
  static void add_rows(ParameterTable::Builder& builder, const std::string& name, const ResnetBlockShape& shape);
  ResnetBlock(const ParameterTable& table, const std::string& name, const ResnetBlockShape& shape);

  const std::vector<ConvolutionNorm>& layers() const { return layers_; }
  const std::optional<ConvolutionNorm>& shortcut() const { return shortcut_; }

  /// Computes memory.y from x (T H W, in), and keeps the values that `backward` needs.
  void forward(const ImagesPass& images, const ConstMatrix<T>& x, const ResnetBlockMemory<T>& memory) const;
  /// Recomputes the convolutions' results, using the statistics that were kept.
  void restore(const ImagesPass& images, const ConstMatrix<T>& x, const ResnetBlockMemory<T>& memory) const;
  /// Computes the gradients of the parameters and of x. The gradient of x is returned in two parts, stored as `to`
  /// says. Overwrites the incoming gradient, the convolutions' results and the memory of `to`.
  GradientSum<T> backward(const ImagesPass& images, const ConstMatrix<T>& x, const ResnetBlockMemory<T>& memory,
                          const GradientSum<T>& gradient, const GradientTargets<T>& to) const;

 private:
  std::vector<ConvolutionNorm> layers_;
  std::optional<ConvolutionNorm> shortcut_;
};

}  // namespace mylos::families
