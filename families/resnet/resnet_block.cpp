#include "families/resnet/resnet_block.hpp"

#include <fmt/format.h>

namespace mylos::families {
namespace {

/// The gradient of a convolution's input, as a matrix in `memory`, which must be large enough.
template <class T>
Matrix<T> input_gradient(const ImagesPass& images, const ConvolutionNorm& layer, T* memory) {
  return Matrix<T>(memory, images.images() * layer.shape().pixels(), layer.shape().in);
}

std::size_t observed_column(const ParameterTable& table, std::size_t state) {
  const ParameterTensor& row = table.state_tensors()[state];
  return table.observed_offset(row.unit) + row.offset;
}

}  // namespace

template <class T>
void ResnetBlock<T>::add_rows(ParameterTable::Builder& builder, const std::string& name,
                              const ResnetBlockShape& shape) {
  if (shape.shortcut) add_convolution_norm_rows(builder, name + ".shortcut", *shape.shortcut);
  for (std::size_t layer = 0; layer < shape.layers.size(); ++layer) {
    add_convolution_norm_rows(builder, fmt::format("{}.layer.{}", name, layer), shape.layers[layer]);
  }
}

template <class T>
ResnetBlock<T>::ResnetBlock(const ParameterTable& table, const std::string& name, const ResnetBlockShape& shape) {
  for (std::size_t layer = 0; layer < shape.layers.size(); ++layer) {
    layers_.push_back(find_convolution_norm(table, fmt::format("{}.layer.{}", name, layer), shape.layers[layer]));
  }
  if (shape.shortcut) shortcut_ = find_convolution_norm(table, name + ".shortcut", *shape.shortcut);
}

template <class T>
void ResnetBlock<T>::forward(const ImagesPass& images, const ConstMatrix<T>& x,
                             const ResnetBlockMemory<T>& memory) const {
  const ExecutionSpace& space = images.pass.space;
  ConstMatrix<T> input = x;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    convolution_norm_forward<T>(images, layers_[i], input, memory.layers[i]);
    if (i + 1 == layers_.size()) break;
    batch_norm_relu<T>(space, images.groups(layers_[i]), normalization_of(images, layers_[i], memory.layers[i]),
                       memory.inner[i]);
    input = memory.inner[i];
  }
  const ConvolutionNorm& last = layers_.back();
  const BatchNormInput<T> result = normalization_of(images, last, memory.layers.back());
  if (!shortcut_) return batch_norm_residual_relu<T>(space, images.groups(last), result, x, memory.y);
  convolution_norm_forward<T>(images, *shortcut_, x, memory.shortcut);
  batch_norm_shortcut_relu<T>(space, images.groups(last), result, normalization_of(images, *shortcut_, memory.shortcut),
                              memory.y);
}

template <class T>
void ResnetBlock<T>::restore(const ImagesPass& images, const ConstMatrix<T>& x,
                             const ResnetBlockMemory<T>& memory) const {
  ConstMatrix<T> input = x;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    nn::convolution_forward<T>(images.pass, layers_[i].convolution, input, memory.layers[i].result);
    if (i + 1 == layers_.size()) break;
    batch_norm_relu<T>(images.pass.space, images.groups(layers_[i]),
                       normalization_of(images, layers_[i], memory.layers[i]), memory.inner[i]);
    input = memory.inner[i];
  }
  if (shortcut_) nn::convolution_forward<T>(images.pass, shortcut_->convolution, x, memory.shortcut.result);
}

template <class T>
GradientSum<T> ResnetBlock<T>::backward(const ImagesPass& images, const ConstMatrix<T>& x,
                                        const ResnetBlockMemory<T>& memory, const GradientSum<T>& gradient,
                                        const GradientTargets<T>& to) const {
  const ExecutionSpace& space = images.pass.space;
  const Vector<float>& workspace = images.norm_workspace;
  const std::vector<ConvolutionNormSaved<T>>& saved = memory.layers;
  // This overwrites gradient.dy with the gradient of the sum before the ReLU. Each result is then overwritten with its
  // gradient.
  batch_norm_sum_relu_backward<T>(
      space, images.groups(layers_.back()), normalization_of(images, layers_.back(), saved.back()), memory.y,
      gradient.dy, gradient.also, saved.back().result, norm_gradients(images, layers_.back()), workspace);
  if (shortcut_) {
    batch_norm_backward<T>(space, images.groups(*shortcut_), normalization_of(images, *shortcut_, memory.shortcut),
                           gradient.dy, memory.shortcut.result, norm_gradients(images, *shortcut_), workspace);
  }
  for (std::size_t i = layers_.size(); i-- > 1;) {
    const ConvolutionNorm& before = layers_[i - 1];
    const BatchNormInput<T> normal = normalization_of(images, before, saved[i - 1]);
    const Matrix<T> inner = input_gradient(images, layers_[i], to.inner);
    batch_norm_relu<T>(space, images.groups(before), normal, inner);
    nn::convolution_weight_gradient<T>(images.pass, layers_[i].convolution, inner, saved[i].result);
    nn::convolution_input_gradient<T>(images.pass, layers_[i].convolution, saved[i].result, inner);
    batch_norm_relu_backward<T>(space, images.groups(before), normal, inner, {}, saved[i - 1].result,
                                norm_gradients(images, before), workspace);
  }
  GradientSum<T> sum{input_gradient(images, layers_.front(), to.dy), gradient.dy};
  nn::convolution_weight_gradient<T>(images.pass, layers_.front().convolution, x, saved.front().result);
  nn::convolution_input_gradient<T>(images.pass, layers_.front().convolution, saved.front().result, sum.dy);
  if (!shortcut_) return sum;
  sum.also = input_gradient(images, *shortcut_, to.also);
  nn::convolution_weight_gradient<T>(images.pass, shortcut_->convolution, x, memory.shortcut.result);
  nn::convolution_input_gradient<T>(images.pass, shortcut_->convolution, memory.shortcut.result, sum.also);
  return sum;
}

template class ResnetBlock<float>;
template class ResnetBlock<bfloat16>;
template class ResnetBlock<half>;

void add_convolution_norm_rows(ParameterTable::Builder& builder, const std::string& name,
                               const ConvolutionShape& shape) {
  const std::string norm = name + ".normalization";
  nn::add_convolution_tensors(builder, name + ".convolution", shape);
  builder.tensor(norm + ".weight", {shape.out}, {Initializer::Kind::ones}, {.decay = false});
  builder.tensor(norm + ".bias", {shape.out}, {Initializer::Kind::zeros}, {.decay = false});
  builder.state(norm + ".running_mean", {shape.out}, {Initializer::Kind::zeros});
  builder.state(norm + ".running_var", {shape.out}, {Initializer::Kind::ones});
  builder.state(norm + ".num_batches_tracked", {1}, {Initializer::Kind::zeros}, {StateRule::Kind::count});
}

ConvolutionNorm find_convolution_norm(const ParameterTable& table, const std::string& name,
                                      const ConvolutionShape& shape) {
  const std::string norm = name + ".normalization";
  ConvolutionNorm layer{.convolution = nn::find_convolution(table, name + ".convolution", shape),
                        .norm_weight = table.find(norm + ".weight"),
                        .norm_bias = table.find(norm + ".bias"),
                        .running_mean = table.find_state(norm + ".running_mean"),
                        .running_variance = table.find_state(norm + ".running_var")};
  layer.observed_mean = observed_column(table, layer.running_mean);
  layer.observed_variance = observed_column(table, layer.running_variance);
  return layer;
}

template <class T>
void convolution_norm_forward(const ImagesPass& images, const ConvolutionNorm& layer, const ConstMatrix<T>& x,
                              const ConvolutionNormSaved<T>& saved) {
  const nn::Pass& pass = images.pass;
  nn::convolution_forward<T>(pass, layer.convolution, x, saved.result);
  if (images.purpose == ParameterStore::Purpose::inference) {
    return running_batch_norm_statistics(pass.space, pass.parameters.state(layer.running_mean),
                                         pass.parameters.state(layer.running_variance), batch_norm_epsilon,
                                         saved.statistics);
  }
  const BatchNormObserved observed{pass.observed, layer.observed_mean, layer.observed_variance};
  batch_norm_statistics<T>(pass.space, images.groups(layer), saved.result, batch_norm_epsilon, saved.statistics,
                           pass.observed.extent(0) > 0 ? observed : BatchNormObserved{}, images.norm_workspace);
}

template <class T>
BatchNormInput<T> normalization_of(const ImagesPass& images, const ConvolutionNorm& layer,
                                   const ConvolutionNormSaved<T>& saved) {
  const ParameterStore& parameters = images.pass.parameters;
  return {saved.result, saved.statistics, parameters.values<T>(layer.norm_weight),
          parameters.values<T>(layer.norm_bias)};
}

BatchNormGradients norm_gradients(const ImagesPass& images, const ConvolutionNorm& layer) {
  const ParameterStore& parameters = images.pass.parameters;
  return {parameters.gradient(layer.norm_weight), parameters.gradient(layer.norm_bias)};
}

double convolution_flops(const ConvolutionShape& shape) {
  return 2.0 * static_cast<double>(shape.out_pixels() * shape.terms() * shape.out);
}

#define MYLOS_INSTANTIATE(T)                                                                                  \
  template void convolution_norm_forward<T>(const ImagesPass&, const ConvolutionNorm&, const ConstMatrix<T>&, \
                                            const ConvolutionNormSaved<T>&);                                  \
  template BatchNormInput<T> normalization_of<T>(const ImagesPass&, const ConvolutionNorm&,                   \
                                                 const ConvolutionNormSaved<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::families
