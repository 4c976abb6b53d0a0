#include "families/resnet/convolution_norm.hpp"

namespace mylos::families {
namespace {

std::size_t observed_column(const ParameterTable& table, std::size_t state) {
  const ParameterTensor& row = table.state_tensors()[state];
  return table.observed_offset(row.unit) + row.offset;
}

}  // namespace

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
