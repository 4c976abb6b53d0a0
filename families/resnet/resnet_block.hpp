#pragma once

#include "families/resnet/convolution_norm.hpp"
#include "families/resnet/resnet_shape.hpp"

#include <optional>
#include <string>
#include <vector>

/// A residual block: y = relu(F(x) + shortcut(x)), where F is two or three convolutions, each with BatchNorm, with ReLU
/// in between. A block is one unit of the model. It keeps the convolutions' results and y; the arrays between two
/// convolutions are recomputed in the backward pass.
namespace mylos::families {

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
