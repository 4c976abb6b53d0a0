#include "nn/layers/convolution.hpp"

#include <cmath>

namespace mylos::nn {

void add_convolution_tensors(ParameterTable::Builder& builder, const std::string& name, const ConvolutionShape& shape) {
  const auto fan_out = static_cast<float>(shape.out * shape.kernel_height * shape.kernel_width);
  builder.tensor(name + ".weight", {shape.out, shape.kernel_height, shape.kernel_width, shape.in},
                 {Initializer::Kind::normal, std::sqrt(2.0f / fan_out)});
}

ConvolutionLayer find_convolution(const ParameterTable& table, const std::string& name, const ConvolutionShape& shape) {
  return {table.find(name + ".weight"), shape};
}

std::vector<GemmProduct> convolution_products(const ConvolutionProducts& convolution, std::size_t images,
                                              ParameterStore::Purpose purpose) {
  std::vector<GemmProduct> products;
  const auto add = [&](ConvolutionPass pass, const char* suffix) {
    GemmProduct product = convolution_product({convolution.shape, pass}, images, convolution.precision);
    product.count = convolution.count;
    product.name = convolution.name + suffix;
    products.push_back(std::move(product));
  };
  add(ConvolutionPass::forward, "/forward");
  if (purpose == ParameterStore::Purpose::inference) return products;
  add(ConvolutionPass::weight_gradient, "/weight-gradient");
  if (convolution.needs_input_gradient) add(ConvolutionPass::input_gradient, "/input-gradient");
  return products;
}

template <class T>
void convolution_forward(const Pass& pass, const ConvolutionLayer& layer, const ConstMatrix<T>& x, const Matrix<T>& y) {
  convolve<T>(pass.space, pass.gemm, layer.shape, x, pass.parameters.matrix<T>(layer.weight), y);
}

template <class T>
void convolution_weight_gradient(const Pass& pass, const ConvolutionLayer& layer, const ConstMatrix<T>& x,
                                 const ConstMatrix<T>& dy) {
  if (!pass.parameters.trains(layer.weight)) return;
  const float beta = pass.parameters.begins_gradient(layer.weight, 1) ? 0.0f : 1.0f;
  convolve_weight_gradient<T>(pass.space, pass.gemm, layer.shape, x, dy, beta,
                              pass.parameters.gradient_matrix(layer.weight));
}

template <class T>
void convolution_input_gradient(const Pass& pass, const ConvolutionLayer& layer, const ConstMatrix<T>& dy,
                                const Matrix<T>& dx) {
  convolve_input_gradient<T>(pass.space, pass.gemm, layer.shape, dy, pass.parameters.matrix<T>(layer.weight), dx);
}

#define MYLOS_INSTANTIATE(T)                                                                                           \
  template void convolution_forward<T>(const Pass&, const ConvolutionLayer&, const ConstMatrix<T>&, const Matrix<T>&); \
  template void convolution_weight_gradient<T>(const Pass&, const ConvolutionLayer&, const ConstMatrix<T>&,            \
                                               const ConstMatrix<T>&);                                                 \
  template void convolution_input_gradient<T>(const Pass&, const ConvolutionLayer&, const ConstMatrix<T>&,             \
                                              const Matrix<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::nn
