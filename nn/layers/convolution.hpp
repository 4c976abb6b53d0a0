#pragma once

#include "core/kernels/products/convolution.hpp"
#include "nn/model.hpp"

/// Convolution y = W * x of images, without a bias: the normalisation that follows has its own. Images are NHWC, stored
/// as (N H W, channels); W is (out, kernel_height, kernel_width, in).
namespace mylos::nn {

/// Adds the parameter tensor `name`.weight, with weight decay, to the current unit. Its initial values are normally
/// distributed with variance 2 / (out kernel_height kernel_width), which preserves the magnitude of gradients through
/// ReLUs.
void add_convolution_tensors(ParameterTable::Builder& builder, const std::string& name, const ConvolutionShape& shape);

/// A convolution layer: the index of its weight tensor, and its shape.
struct ConvolutionLayer {
  std::size_t weight = 0;  ///< index in the parameter table
  ConvolutionShape shape;
};
ConvolutionLayer find_convolution(const ParameterTable& table, const std::string& name, const ConvolutionShape& shape);

/// Describes the matrix products of a convolution layer.
struct ConvolutionProducts {
  std::string name = {};  ///< layer name
  ConvolutionShape shape;
  Precision precision = Precision::float32;
  bool needs_input_gradient = true;  ///< false for a model's first layer
  std::size_t count = 1;             ///< number of layers with this shape
};
/// Returns the products of a pass over `images` images: "<name>/forward", and for training also
/// "<name>/weight-gradient" and "<name>/input-gradient".
std::vector<GemmProduct> convolution_products(const ConvolutionProducts& convolution, std::size_t images,
                                              ParameterStore::Purpose purpose);

/// Computes y (N OH OW, out) from x (N H W, in).
template <class T>
void convolution_forward(const Pass& pass, const ConvolutionLayer& layer, const ConstMatrix<T>& x, const Matrix<T>& y);
/// dW += the weight gradient from x and dy (N OH OW, out).
template <class T>
void convolution_weight_gradient(const Pass& pass, const ConvolutionLayer& layer, const ConstMatrix<T>& x,
                                 const ConstMatrix<T>& dy);
/// dx (N H W, in) = the input gradient from dy (N OH OW, out).
template <class T>
void convolution_input_gradient(const Pass& pass, const ConvolutionLayer& layer, const ConstMatrix<T>& dy,
                                const Matrix<T>& dx);

}  // namespace mylos::nn
