#pragma once

#include "nn/resnet/convolution_norm.hpp"
#include "nn/resnet/resnet_shape.hpp"

#include <optional>
#include <string>
#include <vector>

/// A residual block: y = relu(F(x) + shortcut(x)), where F is two or three convolutions with BatchNorm, and ReLU
/// between them. One unit of the model. Kept are the convolutions' results and y; what stands between two of them is
/// computed again in the backward pass.
namespace mylos::nn {

/// Where a block works. Arrays of the backward pass take the place of what they are made of.
template <class T>
struct ResnetBlockMemory {
  std::vector<ConvolutionNormSaved<T>> layers;
  ConvolutionNormSaved<T> shortcut;
  std::vector<Matrix<T>> inner;  ///< of the forward pass, behind each layer but the last; may be the layer's result
  Matrix<T> y;                   ///< (T OH OW, out)
};

/// A gradient in two parts, whose sum it is; `also` may have no extent.
template <class T>
struct GradientSum {
  Matrix<T> dy;
  Matrix<T> also;
};

/// Memory that a block's backward pass writes to. Where the shortcut is the identity, the second part of the gradient
/// is the first one that came in, and stays where it is.
template <class T>
struct GradientTargets {
  T* inner;  ///< what stands between two convolutions, and its gradient; may be where gradient.also is
  T* dy;     ///< may be `inner`
  T* also;   ///< may be where gradient.dy is
};

template <class T>
class ResnetBlock {
 public:
  /// Adds the rows of a block, as Hugging Face has them below `name`, to the current unit.
  static void add_rows(ParameterTable::Builder& builder, const std::string& name, const ResnetBlockShape& shape);
  ResnetBlock(const ParameterTable& table, const std::string& name, const ResnetBlockShape& shape);

  std::size_t unit() const { return unit_; }
  const std::vector<ConvolutionNorm>& layers() const { return layers_; }
  const std::optional<ConvolutionNorm>& shortcut() const { return shortcut_; }

  /// memory.y from x (T H W, in); keeps what `backward` needs.
  void forward(const ImagesPass& images, const ConstMatrix<T>& x, const ResnetBlockMemory<T>& memory) const;
  /// The results of convolutions again, from the statistics that were kept.
  void restore(const ImagesPass& images, const ConstMatrix<T>& x, const ResnetBlockMemory<T>& memory) const;
  /// Gradients of the parameters, and of x, in two parts that begin where `to` says. The gradient that comes in, the
  /// results and the memory of `to` are overwritten.
  GradientSum<T> backward(const ImagesPass& images, const ConstMatrix<T>& x, const ResnetBlockMemory<T>& memory,
                          const GradientSum<T>& gradient, const GradientTargets<T>& to) const;

 private:
  std::vector<ConvolutionNorm> layers_;
  std::optional<ConvolutionNorm> shortcut_;
  std::size_t unit_;
};

}  // namespace mylos::nn
