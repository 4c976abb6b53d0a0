#include "tests/small_models/decoder_layer.hpp"

#include "core/kernels/attention.hpp"
#include "core/kernels/layer_norm.hpp"
#include "tests/small_models/decoder_kernels.hpp"

#include <fmt/format.h>

#include <cmath>

namespace mylos::small_models {
namespace {

AttentionShape attention_shape(const DecoderShape& shape) {
  return {shape.heads, shape.key_value_heads, shape.head_size(),
          1.0f / std::sqrt(static_cast<float>(shape.head_size())), true};
}

PackedSequences sequences(const Batch& batch) {
  return {batch.sample_starts(), batch.sample_ids(), batch.shape().longest, batch.host_sample_starts()};
}

/// Returns linear layers without bias.
nn::Linear find_weight(const ParameterTable& table, const std::string& name, std::size_t stacked = 1) {
  return {table.find(name), 0, stacked};
}

/// Computes y = x + input W^T.
void add_product(const nn::Pass& pass, const nn::Linear& linear, const ConstMatrix<float>& input,
                 const ConstMatrix<float>& x, const Matrix<float>& y) {
  nn::linear_without_bias<float>(pass, linear, input, y);
  add(pass.space, x, y);
}

}  // namespace

void DecoderLayer::add_rows(ParameterTable::Builder& builder, const DecoderShape& shape, std::size_t index) {
  const std::string name = fmt::format("layers.{}", index);
  const Initializer normal{Initializer::Kind::normal, shape.initializer_range};
  builder.unit(name);
  builder.tensor(name + ".attention.norm.weight", {shape.hidden}, {Initializer::Kind::ones}, {.decay = false});
  builder.tensor(name + ".attention.query.weight", {shape.heads * shape.head_size(), shape.hidden}, normal);
  builder.tensor(name + ".attention.key.weight", {shape.key_value_heads * shape.head_size(), shape.hidden}, normal);
  builder.tensor(name + ".attention.value.weight", {shape.key_value_heads * shape.head_size(), shape.hidden}, normal);
  builder.tensor(name + ".attention.output.weight", {shape.hidden, shape.hidden}, normal);
  builder.tensor(name + ".mlp.norm.weight", {shape.hidden}, {Initializer::Kind::ones}, {.decay = false});
  builder.tensor(name + ".mlp.gate_up.weight", {2 * shape.feed_forward, shape.hidden}, normal);
  builder.tensor(name + ".mlp.down.weight", {shape.hidden, shape.feed_forward}, normal);
}

DecoderLayer::DecoderLayer(const ParameterTable& table, const DecoderShape& shape, std::size_t index) : shape_(shape) {
  const std::string name = fmt::format("layers.{}", index);
  attention_norm_ = table.find(name + ".attention.norm.weight");
  qkv_ = find_weight(table, name + ".attention.query.weight", 3);
  attention_output_ = find_weight(table, name + ".attention.output.weight");
  mlp_norm_ = table.find(name + ".mlp.norm.weight");
  gate_up_ = find_weight(table, name + ".mlp.gate_up.weight");
  down_ = find_weight(table, name + ".mlp.down.weight");
}

DecoderLayerActivations DecoderLayer::take_activations(Arena& arena, const DecoderShape& shape, std::size_t rows,
                                                       const DecoderLayerActivations* before) {
  const std::size_t hidden = shape.hidden;
  if (before != nullptr) {
    DecoderLayerActivations shared = *before;
    shared.output = arena.matrix<float>(rows, hidden);
    return shared;
  }
  return {.attention_inverse = arena.vector<float>(rows),
          .attention_input = arena.matrix<float>(rows, hidden),
          .qkv = arena.matrix<float>(rows, shape.projected()),
          .context = arena.matrix<float>(rows, hidden),
          .log_sum_exp = arena.matrix<float>(shape.heads, rows),
          .middle = arena.matrix<float>(rows, hidden),
          .mlp_inverse = arena.vector<float>(rows),
          .mlp_input = arena.matrix<float>(rows, hidden),
          .gate_up = arena.matrix<float>(rows, 2 * shape.feed_forward),
          .activation = arena.matrix<float>(rows, shape.feed_forward),
          .output = arena.matrix<float>(rows, hidden)};
}

DecoderLayerWorkspace DecoderLayer::take_workspace(Arena& arena, const DecoderShape& shape, std::size_t rows) {
  return {.dcontext = arena.matrix<float>(rows, shape.hidden),
          .dnormal = arena.matrix<float>(rows, shape.hidden),
          .dqkv = arena.matrix<float>(rows, shape.projected()),
          .dgate_up = arena.matrix<float>(rows, 2 * shape.feed_forward),
          .dactivation = arena.matrix<float>(rows, shape.feed_forward),
          .row_sums = arena.matrix<float>(shape.heads, rows),
          .column_sums = arena.vector<float>(column_sum_workspace(rows, shape.hidden))};
}

void DecoderLayer::forward(const nn::Pass& pass, const Batch& batch, const ConstMatrix<float>& input,
                           const DecoderLayerActivations& saved) const {
  const ParameterStore& parameters = pass.parameters;
  rms_norm(pass.space, parameters.values<float>(attention_norm_), shape_.epsilon, input, saved.attention_inverse,
           saved.attention_input);
  nn::linear_without_bias<float>(pass, qkv_, saved.attention_input, saved.qkv);
  attention_forward<float>(pass.space, attention_shape(shape_), sequences(batch), {}, saved.qkv, saved.context,
                           saved.log_sum_exp);
  add_product(pass, attention_output_, saved.context, input, saved.middle);
  rms_norm(pass.space, parameters.values<float>(mlp_norm_), shape_.epsilon, saved.middle, saved.mlp_inverse,
           saved.mlp_input);
  nn::linear_without_bias<float>(pass, gate_up_, saved.mlp_input, saved.gate_up);
  swiglu(pass.space, saved.gate_up, saved.activation);
  add_product(pass, down_, saved.activation, saved.middle, saved.output);
}

void DecoderLayer::backward(const nn::Pass& pass, const Batch& batch, const ConstMatrix<float>& input,
                            const DecoderLayerActivations& saved, const DecoderLayerWorkspace& work,
                            const Matrix<float>& dx) const {
  const ParameterStore& parameters = pass.parameters;
  nn::linear_weight_gradient<float>(pass, down_, saved.activation, dx);
  nn::linear_input_gradient<float>(pass, down_, dx, 0.0f, work.dactivation);
  swiglu_backward(pass.space, saved.gate_up, work.dactivation, work.dgate_up);
  nn::linear_weight_gradient<float>(pass, gate_up_, saved.mlp_input, work.dgate_up);
  nn::linear_input_gradient<float>(pass, gate_up_, work.dgate_up, 0.0f, work.dnormal);
  rms_norm_backward(pass.space, parameters.values<float>(mlp_norm_), saved.middle, saved.mlp_inverse, work.dnormal, dx,
                    parameters.gradient(mlp_norm_), work.column_sums);

  nn::linear_weight_gradient<float>(pass, attention_output_, saved.context, dx);
  nn::linear_input_gradient<float>(pass, attention_output_, dx, 0.0f, work.dcontext);
  attention_backward<float>(pass.space, attention_shape(shape_), sequences(batch), {}, saved.qkv, saved.context,
                            saved.log_sum_exp, work.dcontext, work.dqkv, work.row_sums);
  nn::linear_weight_gradient<float>(pass, qkv_, saved.attention_input, work.dqkv);
  nn::linear_input_gradient<float>(pass, qkv_, work.dqkv, 0.0f, work.dnormal);
  rms_norm_backward(pass.space, parameters.values<float>(attention_norm_), input, saved.attention_inverse, work.dnormal,
                    dx, parameters.gradient(attention_norm_), work.column_sums);
}

}  // namespace mylos::small_models
