#pragma once

#include "core/kernels/convolution.hpp"
#include "nn/model.hpp"

/// y = the convolution of images x with W, without a bias: what follows, a normalisation, has its own. Images are NHWC,
/// (N H W, channels); W is (out, kernel_height, kernel_width, in).
namespace mylos::nn {

/// Adds the parameter tensor `name`.weight, decayed, to the current unit: normally distributed with the variance
/// 2 / (out kernel_height kernel_width), which keeps the size of gradients through rectifiers.
void add_convolution_rows(ParameterTable::Builder& builder, const std::string& name, const ConvolutionShape& shape);

/// A convolution of a model.
struct ConvolutionLayer {
  std::size_t weight = 0;  ///< row of the table
  ConvolutionShape shape;
};
ConvolutionLayer find_convolution(const ParameterTable& table, const std::string& name, const ConvolutionShape& shape);

/// What a convolution multiplies.
struct ConvolutionProducts {
  std::string name = {};  ///< of the layer
  ConvolutionShape shape;
  Precision precision = Precision::float32;
  bool needs_input_gradient = true;  ///< false for a model's first layer
  std::size_t count = 1;             ///< layers of this shape
};
/// The products of a pass over so many images: "<name>/forward", and for training "<name>/weight-gradient" and
/// "<name>/input-gradient".
std::vector<GemmProduct> convolution_products(const ConvolutionProducts& convolution, std::size_t images,
                                              ParameterStore::Purpose purpose);

/// y (N OH OW, out) from x (N H W, in).
template <class T>
void convolution_forward(const Pass& pass, const ConvolutionLayer& layer, const ConstMatrix<T>& x, const Matrix<T>& y);
/// dW += the gradient of x and dy (N OH OW, out).
template <class T>
void convolution_weight_gradient(const Pass& pass, const ConvolutionLayer& layer, const ConstMatrix<T>& x,
                                 const ConstMatrix<T>& dy);
/// dx (N H W, in) = the gradient of dy.
template <class T>
void convolution_input_gradient(const Pass& pass, const ConvolutionLayer& layer, const ConstMatrix<T>& dy,
                                const Matrix<T>& dx);

}  // namespace mylos::nn
