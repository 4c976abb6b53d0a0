#include "families/bert/bert_layer.hpp"

#include "core/kernels/activation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mylos::families {
namespace {

/// Dropout sites: site 0 is for the embeddings, followed by three sites per layer.
enum Site : std::uint32_t { attention_probabilities = 1, attention_result = 2, feed_forward_result = 3 };
constexpr std::uint32_t sites_per_layer = 3;

PackedSequences sequences(const Batch& batch) {
  return {batch.sample_starts(), batch.sample_ids(), batch.shape().longest, batch.host_sample_starts()};
}

}  // namespace

AttentionShape attention_shape(const BertShape& shape) {
  const std::size_t head_size = shape.hidden / shape.heads;
  return {.heads = shape.heads,
          .key_value_heads = shape.heads,
          .head_size = head_size,
          .scale = 1.0f / std::sqrt(static_cast<float>(head_size)),
          .kernel = shape.attention};
}

void add_layer_norm_rows(ParameterTable::Builder& builder, const std::string& name, std::size_t size) {
  builder.tensor(name + ".weight", {size}, {Initializer::Kind::ones}, {.decay = false});
  builder.tensor(name + ".bias", {size}, {Initializer::Kind::zeros}, {.decay = false});
}

LayerNormTensors find_layer_norm(const ParameterTable& table, const std::string& name) {
  return {table.find(name + ".weight"), table.find(name + ".bias")};
}

template <class T>
LayerNormParameters<T> layer_norm_parameters(const ParameterStore& store, const LayerNormTensors& rows, float epsilon) {
  return {store.values<T>(rows.weight), store.values<T>(rows.bias), epsilon};
}

template <class T>
LayerNormSaved<T> take_layer_norm_saved(Arena& arena, std::size_t rows, std::size_t columns) {
  return {arena.matrix<T>(rows, columns), arena.vector<float>(rows), arena.vector<float>(rows)};
}

template <class T>
void BertLayer<T>::add_rows(ParameterTable::Builder& builder, const BertShape& shape, std::size_t index) {
  const std::string name = fmt::format("{}.encoder.layer.{}", shape.prefix, index);
  const std::size_t hidden = shape.hidden;
  const Initializer normal{Initializer::Kind::normal, shape.initializer_range};
  builder.unit(fmt::format("layer.{}", index));
  builder.stack(true);
  for (const char* projection : {"query", "key", "value"}) {
    nn::add_linear_tensors(builder, fmt::format("{}.attention.self.{}", name, projection), hidden, hidden, normal);
  }
  builder.stack(false);
  nn::add_linear_tensors(builder, name + ".attention.output.dense", hidden, hidden, normal);
  add_layer_norm_rows(builder, name + ".attention.output.LayerNorm", hidden);
  nn::add_linear_tensors(builder, name + ".intermediate.dense", hidden, shape.feed_forward, normal);
  nn::add_linear_tensors(builder, name + ".output.dense", shape.feed_forward, hidden, normal);
  add_layer_norm_rows(builder, name + ".output.LayerNorm", hidden);
}

template <class T>
BertLayer<T>::BertLayer(const ParameterTable& table, const BertShape& shape, std::size_t index)
    : shape_(shape), index_(index) {
  const std::string name = fmt::format("{}.encoder.layer.{}", shape.prefix, index);
  query_key_value_ = nn::find_linear(table, name + ".attention.self.query", 3);
  attention_dense_ = nn::find_linear(table, name + ".attention.output.dense");
  attention_norm_ = find_layer_norm(table, name + ".attention.output.LayerNorm");
  intermediate_ = nn::find_linear(table, name + ".intermediate.dense");
  output_ = nn::find_linear(table, name + ".output.dense");
  output_norm_ = find_layer_norm(table, name + ".output.LayerNorm");
}

template <class T>
BertLayerActivations<T> BertLayer<T>::take_activations(Arena& arena, const BertShape& shape, std::size_t rows,
                                                       nn::Recompute recompute, const BertLayerActivations<T>* before) {
  const std::size_t hidden = shape.hidden;
  BertLayerActivations<T> taken = before == nullptr ? BertLayerActivations<T>{} : *before;
  if (before == nullptr || recompute == nn::Recompute::none) taken.qkv = arena.matrix<T>(rows, 3 * hidden);
  if (before == nullptr || recompute != nn::Recompute::layer) {
    taken.context = arena.matrix<T>(rows, hidden);
    taken.log_sum_exp = arena.matrix<float>(shape.heads, rows);
    taken.attention_norm = take_layer_norm_saved<T>(arena, rows, hidden);
    taken.pre_activation = arena.matrix<T>(rows, shape.feed_forward);
    taken.output_norm = take_layer_norm_saved<T>(arena, rows, hidden);
  }
  taken.output = arena.matrix<T>(rows, hidden);
  return taken;
}

template <class T>
BertLayerScratch<T> BertLayer<T>::take_scratch(Arena& arena, const BertShape& shape, std::size_t rows) {
  return {.attention_output = arena.matrix<T>(rows, shape.hidden),
          .activation = arena.matrix<T>(rows, shape.feed_forward)};
}

template <class T>
BertLayerWorkspace<T> BertLayer<T>::take_workspace(Arena& arena, const BertShape& shape, std::size_t rows) {
  const std::size_t hidden = shape.hidden;
  const std::size_t widest = std::max(shape.feed_forward, 3 * hidden);
  // dfeed_forward and dqkv share memory: the feed-forward gradient is dead when that of attention begins.
  T* const wide = arena.vector<T>(rows * widest).data();
  return {.dresidual = arena.matrix<T>(rows, hidden),
          .dsublayer = arena.matrix<T>(rows, hidden),
          .dcontext = arena.matrix<T>(rows, hidden),
          .dfeed_forward = Matrix<T>(wide, rows, shape.feed_forward),
          .dqkv = Matrix<T>(wide, rows, 3 * hidden),
          .row_sums = arena.matrix<float>(shape.heads, rows),
          .column_sums = arena.vector<float>(column_sum_workspace(rows, widest))};
}

template <class T>
std::size_t BertLayer<T>::scratch_bytes(const BertShape& shape, const BatchShape& batch,
                                        ParameterStore::Purpose purpose, const TeamProcessor& processor) {
  const AttentionShape attention = attention_shape(shape);
  const bool trains = purpose == ParameterStore::Purpose::training;
  const std::size_t dropped_rows = trains && shape.attention_dropout > 0.0f ? batch.rows : 0;
  const std::size_t forward =
      attention_forward_scratch<T>(attention, batch.samples, batch.longest, processor, dropped_rows);
  if (!trains) return forward;
  return std::max(forward, attention_backward_scratch<T>(attention, batch.samples, batch.longest, processor,
                                                         precision_of<T> == Precision::float32, dropped_rows));
}

template <class T>
std::vector<GemmProduct> BertLayer<T>::products(const BertShape& shape, std::size_t rows,
                                                ParameterStore::Purpose purpose) {
  const std::size_t hidden = shape.hidden, feed_forward = shape.feed_forward;
  nn::LinearProducts qkv{
      .name = "qkv", .in = hidden, .out = 3 * hidden, .forward = EpilogueKind::bias, .adds_input_gradient = true};
  nn::LinearProducts attention{.name = "attention-output", .in = hidden, .out = hidden};
  nn::LinearProducts intermediate{.name = "intermediate",
                                  .in = hidden,
                                  .out = feed_forward,
                                  .forward = EpilogueKind::bias_gelu,
                                  .adds_input_gradient = true};
  nn::LinearProducts output{.name = "output", .in = feed_forward, .out = hidden};
  std::vector<GemmProduct> all;
  for (nn::LinearProducts* linear : {&qkv, &attention, &intermediate, &output}) {
    linear->precision = precision_of<T>;
    linear->count = shape.layers;
    for (const GemmProduct& product : nn::linear_products(*linear, rows, purpose)) all.push_back(product);
  }
  return all;
}

template <class T>
nn::UnitFlops BertLayer<T>::training_flops(const BertShape& shape, const BatchShape& batch, nn::Recompute recompute) {
  const auto hidden = static_cast<double>(shape.hidden), feed_forward = static_cast<double>(shape.feed_forward);
  const double length = static_cast<double>(batch.rows) / static_cast<double>(batch.samples);
  const double qkv = 3.0 * hidden * hidden, scores = 2.0 * hidden * length;
  const double forward = 4.0 * hidden * hidden + 2.0 * hidden * feed_forward + scores;
  const double again = recompute == nn::Recompute::layer ? forward : recompute == nn::Recompute::attention ? qkv : 0.0;
  const double operations = 2.0 * static_cast<double>(batch.rows);
  return {operations * forward, operations * (forward + scores), operations * (forward - scores), operations * again};
}

template <class T>
DropoutKey BertLayer<T>::key(const nn::Pass& pass, std::uint32_t site, float probability) const {
  return {pass.seed, pass.step, static_cast<std::uint32_t>(index_) * sites_per_layer + site, probability};
}

template <class T>
void BertLayer<T>::forward(const nn::Pass& pass, const Batch& batch, const DropoutRates& rates,
                           const ConstMatrix<T>& input, const BertLayerActivations<T>& saved,
                           const BertLayerScratch<T>& scratch) const {
  const float epsilon = shape_.layer_norm_epsilon;
  const auto& parameters = pass.parameters;
  nn::linear_forward<T>(pass, query_key_value_, input, saved.qkv);
  attention_forward<T>(pass.space, attention_shape(shape_), sequences(batch),
                       key(pass, attention_probabilities, rates.attention), saved.qkv, saved.context,
                       saved.log_sum_exp);
  nn::linear_without_bias<T>(pass, attention_dense_, saved.context, saved.attention_norm.input);
  bias_dropout_residual_layer_norm<T>(pass.space, key(pass, attention_result, rates.hidden), dropout_rows(batch),
                                      saved.attention_norm.input, parameters.values<T>(attention_dense_.bias), input,
                                      layer_norm_parameters<T>(parameters, attention_norm_, epsilon),
                                      saved.attention_norm, scratch.attention_output);
  nn::linear_gelu_forward<T>(pass, intermediate_, scratch.attention_output, saved.pre_activation, scratch.activation);
  nn::linear_without_bias<T>(pass, output_, scratch.activation, saved.output_norm.input);
  bias_dropout_residual_layer_norm<T>(
      pass.space, key(pass, feed_forward_result, rates.hidden), dropout_rows(batch), saved.output_norm.input,
      parameters.values<T>(output_.bias), scratch.attention_output,
      layer_norm_parameters<T>(parameters, output_norm_, epsilon), saved.output_norm, saved.output);
}

template <class T>
void BertLayer<T>::restore(const nn::Pass& pass, const Batch& batch, const DropoutRates& rates,
                           const ConstMatrix<T>& input, const BertLayerActivations<T>& saved,
                           const BertLayerScratch<T>& scratch) const {
  // Under Recompute::attention the context is kept: recomputing it costs more than a matrix product of its size.
  if (pass.recompute == nn::Recompute::attention) nn::linear_forward<T>(pass, query_key_value_, input, saved.qkv);
  if (pass.recompute == nn::Recompute::layer) forward(pass, batch, rates, input, saved, scratch);
}

template <class T>
void BertLayer<T>::backward(const nn::Pass& pass, const Batch& batch, const DropoutRates& rates,
                            const ConstMatrix<T>& input, const BertLayerActivations<T>& saved,
                            const ConstMatrix<T>& doutput, const BertLayerWorkspace<T>& work,
                            const Matrix<T>& dinput) const {
  const float epsilon = shape_.layer_norm_epsilon;
  const auto& parameters = pass.parameters;
  bias_dropout_residual_layer_norm_backward<T>(
      pass.space, key(pass, feed_forward_result, rates.hidden), dropout_rows(batch), doutput,
      layer_norm_parameters<T>(parameters, output_norm_, epsilon), saved.output_norm, work.dresidual, work.dsublayer,
      parameters.gradient(output_norm_.weight), parameters.gradient(output_norm_.bias),
      parameters.gradient(output_.bias), work.column_sums);
  nn::linear_input_gradient<T>(pass, output_, work.dsublayer, 0.0f, work.dfeed_forward);
  gelu_backward<T>(pass.space, saved.pre_activation, work.dfeed_forward, parameters.gradient(intermediate_.bias),
                   work.column_sums);
  const Matrix<T>& activation = saved.pre_activation;  // since gelu_backward
  nn::linear_weight_gradient<T>(pass, output_, activation, work.dsublayer);
  if (nn::reads_input(pass, intermediate_)) {
    layer_norm_again<T>(pass.space, layer_norm_parameters<T>(parameters, attention_norm_, epsilon),
                        saved.attention_norm, work.dcontext);
  }
  nn::linear_weight_gradient<T>(pass, intermediate_, work.dcontext, work.dfeed_forward);
  nn::linear_input_gradient<T>(pass, intermediate_, work.dfeed_forward, 1.0f, work.dresidual);

  bias_dropout_residual_layer_norm_backward<T>(
      pass.space, key(pass, attention_result, rates.hidden), dropout_rows(batch), work.dresidual,
      layer_norm_parameters<T>(parameters, attention_norm_, epsilon), saved.attention_norm, dinput, work.dsublayer,
      parameters.gradient(attention_norm_.weight), parameters.gradient(attention_norm_.bias),
      parameters.gradient(attention_dense_.bias), work.column_sums);
  nn::linear_weight_gradient<T>(pass, attention_dense_, saved.context, work.dsublayer);
  nn::linear_input_gradient<T>(pass, attention_dense_, work.dsublayer, 0.0f, work.dcontext);
  attention_backward<T>(pass.space, attention_shape(shape_), sequences(batch),
                        key(pass, attention_probabilities, rates.attention), saved.qkv, saved.context,
                        saved.log_sum_exp, work.dcontext, work.dqkv, work.row_sums);
  nn::linear_gradients<T>(pass, query_key_value_, input, work.dqkv, work.column_sums);
  if (pass.is_first_trained) return;
  nn::linear_input_gradient<T>(pass, query_key_value_, work.dqkv, 1.0f, dinput);
}

#define MYLOS_INSTANTIATE(T)                                                                                       \
  template class BertLayer<T>;                                                                                     \
  template LayerNormParameters<T> layer_norm_parameters<T>(const ParameterStore&, const LayerNormTensors&, float); \
  template LayerNormSaved<T> take_layer_norm_saved<T>(Arena&, std::size_t, std::size_t);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::families
