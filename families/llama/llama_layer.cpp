#include "families/llama/llama_layer.hpp"

#include "core/kernels/norms/layer_norm.hpp"
#include "core/kernels/products/few_rows_product.hpp"
#include "core/kernels/swiglu.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::families {
namespace {

PackedSequences packed_sequences(const Batch& batch) {
  return {batch.sample_starts(), batch.sample_ids(), batch.shape().longest, batch.host_sample_starts()};
}

std::string layer_name(std::size_t index) { return fmt::format("model.layers.{}.", index); }

/// Looks up a linear layer without a bias. `stacked` layers that read the same input are treated as one.
nn::Linear find_projection(const ParameterTable& table, const std::string& name, std::size_t stacked = 1) {
  return {.weight = table.find(name + ".weight"), .stacked = stacked};
}

/// Rows of the array in which attention accumulates the tiles of long sequences; 0 if `batch` has none.
template <class T>
std::size_t partial_rows(const LlamaShape& shape, const BatchShape& batch) {
  const bool needed = precision_of<T> != Precision::float32 && shape.attention == AttentionKernel::portable &&
                      batch.longest > static_cast<std::size_t>(longest_attention_tile);
  return needed ? batch.rows : 0;
}

template <class T>
bool attends_to(const LlamaCache<T>* cache) {
  return cache != nullptr && cache->workspace.extent(0) > 0;
}

template <class T>
RmsNormSaved<T> take_norm(Arena& arena, std::size_t rows, std::size_t columns) {
  return {arena.matrix<T>(rows, columns), arena.vector<float>(rows)};
}

}  // namespace

void add_rms_norm_row(ParameterTable::Builder& builder, const std::string& name, std::size_t size) {
  builder.tensor(name + ".weight", {size}, {Initializer::Kind::ones}, {.decay = false});
}

template <class T>
void LlamaLayer<T>::add_rows(ParameterTable::Builder& builder, const LlamaShape& shape, std::size_t index) {
  const std::string name = layer_name(index);
  const std::size_t hidden = shape.hidden, key_columns = shape.key_value_heads * shape.head_size;
  const Initializer normal{Initializer::Kind::normal, shape.initializer_range};
  builder.unit(fmt::format("layer.{}", index));
  builder.stack(true).tensor(name + "self_attn.q_proj.weight", {shape.query_columns(), hidden}, normal);
  builder.tensor(name + "self_attn.k_proj.weight", {key_columns, hidden}, normal);
  builder.tensor(name + "self_attn.v_proj.weight", {key_columns, hidden}, normal);
  builder.stack(false).tensor(name + "self_attn.o_proj.weight", {hidden, shape.query_columns()}, normal);
  builder.stack(true).tensor(name + "mlp.gate_proj.weight", {shape.feed_forward, hidden}, normal);
  builder.tensor(name + "mlp.up_proj.weight", {shape.feed_forward, hidden}, normal);
  builder.stack(false).tensor(name + "mlp.down_proj.weight", {hidden, shape.feed_forward}, normal);
  add_rms_norm_row(builder, name + "input_layernorm", hidden);
  add_rms_norm_row(builder, name + "post_attention_layernorm", hidden);
}

template <class T>
LlamaLayer<T>::LlamaLayer(const ParameterTable& table, const LlamaShape& shape, std::size_t index) : shape_(shape) {
  const std::string name = layer_name(index);
  query_key_value_ = find_projection(table, name + "self_attn.q_proj", 3);
  attention_output_ = find_projection(table, name + "self_attn.o_proj");
  gate_up_ = find_projection(table, name + "mlp.gate_proj", 2);
  down_ = find_projection(table, name + "mlp.down_proj");
  attention_norm_ = table.find(name + "input_layernorm.weight");
  mlp_norm_ = table.find(name + "post_attention_layernorm.weight");
}

template <class T>
LlamaLayerActivations<T> LlamaLayer<T>::take_activations(Arena& arena, const LlamaShape& shape, std::size_t rows,
                                                         nn::Recompute recompute,
                                                         const LlamaLayerActivations<T>* before) {
  LlamaLayerActivations<T> taken = before == nullptr ? LlamaLayerActivations<T>{} : *before;
  taken.attention_norm.input = arena.matrix<T>(rows, shape.hidden);
  if (before == nullptr || recompute == nn::Recompute::none) taken.qkv = arena.matrix<T>(rows, shape.qkv_columns());
  if (before == nullptr || recompute != nn::Recompute::layer) {
    taken.attention_norm.inverse = arena.vector<float>(rows);
    taken.context = arena.matrix<T>(rows, shape.query_columns());
    taken.log_sum_exp = arena.matrix<float>(shape.heads, rows);
    taken.mlp_norm = take_norm<T>(arena, rows, shape.hidden);
    taken.gate_up = arena.matrix<T>(rows, 2 * shape.feed_forward);
  }
  return taken;
}

template <class T>
LlamaLayerScratch<T> LlamaLayer<T>::take_scratch(Arena& arena, const LlamaShape& shape, std::size_t rows) {
  return {.normal = arena.matrix<T>(rows, shape.hidden), .activation = arena.matrix<T>(rows, shape.feed_forward)};
}

template <class T>
LlamaLayerWorkspace<T> LlamaLayer<T>::take_workspace(Arena& arena, const LlamaShape& shape, const BatchShape& batch) {
  const std::size_t rows = batch.rows;
  // The arrays of each pair share memory: each is dead when the other is written.
  T* const narrow = arena.vector<T>(rows * std::max(shape.hidden, shape.query_columns())).data();
  T* const wide = arena.vector<T>(rows * std::max(shape.feed_forward, shape.qkv_columns())).data();
  return {.normal = Matrix<T>(narrow, rows, shape.hidden),
          .dcontext = Matrix<T>(narrow, rows, shape.query_columns()),
          .dactivation = Matrix<T>(wide, rows, shape.feed_forward),
          .dqkv = Matrix<T>(wide, rows, shape.qkv_columns()),
          .row_sums = arena.matrix<float>(shape.heads, rows),
          .partial_dqkv = arena.matrix<float>(partial_rows<T>(shape, batch), shape.qkv_columns()),
          .column_sums = arena.vector<float>(column_sum_workspace(rows, shape.hidden))};
}

template <class T>
std::vector<GemmProduct> LlamaLayer<T>::products(const LlamaShape& shape, std::size_t rows,
                                                 ParameterStore::Purpose purpose) {
  const std::size_t hidden = shape.hidden, feed_forward = shape.feed_forward;
  std::vector<GemmProduct> all;
  for (nn::LinearProducts linear :
       {nn::LinearProducts{.name = "qkv", .in = hidden, .out = shape.qkv_columns()},
        nn::LinearProducts{.name = "attention-output", .in = shape.query_columns(), .out = hidden},
        nn::LinearProducts{.name = "gate-up", .in = hidden, .out = 2 * feed_forward},
        nn::LinearProducts{.name = "down", .in = feed_forward, .out = hidden}}) {
    linear.precision = precision_of<T>;
    linear.count = shape.layers;
    for (const GemmProduct& product : nn::linear_products(linear, rows, purpose)) all.push_back(product);
  }
  return all;
}

template <class T>
nn::UnitFlops LlamaLayer<T>::training_flops(const LlamaShape& shape, const BatchShape& batch, nn::Recompute recompute) {
  const auto hidden = static_cast<double>(shape.hidden), feed_forward = static_cast<double>(shape.feed_forward);
  const auto queries = static_cast<double>(shape.query_columns());
  const double length = static_cast<double>(batch.rows) / static_cast<double>(batch.samples);
  const double qkv = hidden * static_cast<double>(shape.qkv_columns()), down = hidden * feed_forward;
  // Two products per head for each pair of a token and one it attends to: half of the tokens, and itself.
  const double scores = queries * (length + 1.0);
  const double forward = qkv + hidden * queries + 3.0 * down + scores;
  // The product with `down` is skipped: it gives only the next layer's input, which is kept.
  const double again = recompute == nn::Recompute::layer       ? forward - down
                       : recompute == nn::Recompute::attention ? qkv
                                                               : 0.0;
  const double operations = 2.0 * static_cast<double>(batch.rows);
  return {operations * forward, operations * (forward + scores), operations * (forward - scores), operations * again};
}

template <class T>
void LlamaLayer<T>::multiply(const nn::Pass& pass, const nn::Linear& linear, const ConstMatrix<T>& x,
                             const Matrix<T>& y, const LlamaCache<T>* cache) const {
  if (!attends_to(cache)) return nn::linear_without_bias<T>(pass, linear, x, y);
  few_rows_product<T, T>(pass.space, x, pass.parameters.stacked_matrix<T>(linear.weight, linear.stacked), y);
}

template <class T>
void LlamaLayer<T>::project(const nn::Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
                            const Matrix<T>& normal, const LlamaCache<T>* cache) const {
  multiply(pass, query_key_value_, normal, saved.qkv, cache);
  rotate<T>(pass.space, tokens.rotary, shape_.heads + shape_.key_value_heads, Rotation::forward, saved.qkv);
}

template <class T>
void LlamaLayer<T>::attend(const nn::Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
                           const LlamaCache<T>* cache) const {
  const AttentionShape shape = attention_shape(shape_);
  if (cache != nullptr) store_keys_values<T>(pass.space, shape, saved.qkv, cache->rows, cache->layer);
  if (attends_to(cache)) {
    return cached_attention<T>(pass.space, shape, saved.qkv, cache->rows, cache->layer, cache->workspace,
                               saved.context);
  }
  attention_forward<T>(pass.space, shape, packed_sequences(tokens.batch), {}, saved.qkv, saved.context,
                       saved.log_sum_exp);
}

template <class T>
void LlamaLayer<T>::forward_to_gate(const nn::Pass& pass, const LlamaTokens& tokens, const ConstMatrix<T>& residual,
                                    const LlamaLayerActivations<T>& saved, const Matrix<T>& normal,
                                    const LlamaCache<T>* cache) const {
  residual_rms_norm<T>(pass.space, residual, norm(pass, attention_norm_), saved.attention_norm, normal);
  project(pass, tokens, saved, normal, cache);
  attend(pass, tokens, saved, cache);
  multiply(pass, attention_output_, saved.context, saved.mlp_norm.input, cache);
  residual_rms_norm<T>(pass.space, saved.attention_norm.input, norm(pass, mlp_norm_), saved.mlp_norm, normal);
  multiply(pass, gate_up_, normal, saved.gate_up, cache);
}

template <class T>
void LlamaLayer<T>::forward(const nn::Pass& pass, const LlamaTokens& tokens, const ConstMatrix<T>& residual,
                            const LlamaLayerActivations<T>& saved, const LlamaLayerScratch<T>& scratch,
                            const Matrix<T>& output, const LlamaCache<T>* cache) const {
  forward_to_gate(pass, tokens, residual, saved, scratch.normal, cache);
  swiglu<T>(pass.space, saved.gate_up, scratch.activation);
  multiply(pass, down_, scratch.activation, output, cache);
}

template <class T>
void LlamaLayer<T>::restore(const nn::Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
                            const LlamaLayerScratch<T>& scratch) const {
  if (pass.recompute == nn::Recompute::layer) forward_to_gate(pass, tokens, {}, saved, scratch.normal);
  if (pass.recompute == nn::Recompute::attention) {
    rms_norm_again<T>(pass.space, norm(pass, attention_norm_), saved.attention_norm, scratch.normal);
    project(pass, tokens, saved, scratch.normal);
  }
}

template <class T>
void LlamaLayer<T>::backward(const nn::Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
                             const LlamaLayerWorkspace<T>& workspace, const Matrix<T>& dx) const {
  mlp_backward(pass, saved, workspace, dx);
  attention_part_backward(pass, tokens, saved, workspace, dx);
}

template <class T>
void LlamaLayer<T>::mlp_backward(const nn::Pass& pass, const LlamaLayerActivations<T>& saved,
                                 const LlamaLayerWorkspace<T>& work, const Matrix<T>& dx) const {
  nn::linear_input_gradient<T>(pass, down_, dx, 0.0f, work.dactivation);
  swiglu_backward<T>(pass.space, saved.gate_up, work.dactivation);  // overwrites dactivation with the activation
  nn::linear_weight_gradient<T>(pass, down_, work.dactivation, dx);
  rms_norm_again<T>(pass.space, norm(pass, mlp_norm_), saved.mlp_norm, work.normal);
  nn::linear_weight_gradient<T>(pass, gate_up_, work.normal, saved.gate_up);
  nn::linear_input_gradient<T>(pass, gate_up_, saved.gate_up, 0.0f, work.normal);
  rms_norm_backward<T>(pass.space, norm(pass, mlp_norm_), saved.mlp_norm, work.normal, dx,
                       pass.parameters.gradient(mlp_norm_), work.column_sums);
}

template <class T>
void LlamaLayer<T>::attention_part_backward(const nn::Pass& pass, const LlamaTokens& tokens,
                                            const LlamaLayerActivations<T>& saved, const LlamaLayerWorkspace<T>& work,
                                            const Matrix<T>& dx) const {
  nn::linear_weight_gradient<T>(pass, attention_output_, saved.context, dx);
  nn::linear_input_gradient<T>(pass, attention_output_, dx, 0.0f, work.dcontext);
  attention_backward<T>(pass.space, attention_shape(shape_), packed_sequences(tokens.batch), {}, saved.qkv,
                        saved.context, saved.log_sum_exp, work.dcontext, work.dqkv, work.row_sums, work.partial_dqkv);
  rotate<T>(pass.space, tokens.rotary, shape_.heads + shape_.key_value_heads, Rotation::backward, work.dqkv);
  rms_norm_again<T>(pass.space, norm(pass, attention_norm_), saved.attention_norm, work.normal);
  nn::linear_weight_gradient<T>(pass, query_key_value_, work.normal, work.dqkv);
  nn::linear_input_gradient<T>(pass, query_key_value_, work.dqkv, 0.0f, work.normal);
  rms_norm_backward<T>(pass.space, norm(pass, attention_norm_), saved.attention_norm, work.normal, dx,
                       pass.parameters.gradient(attention_norm_), work.column_sums);
}

template class LlamaLayer<float>;
template class LlamaLayer<bfloat16>;
template class LlamaLayer<half>;

}  // namespace mylos::families
