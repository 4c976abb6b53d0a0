#include "families/llama/llama_layer.hpp"

#include "core/kernels/attention/attention_work.hpp"
#include "core/kernels/norms/layer_norm.hpp"
#include "core/kernels/products/few_rows_product.hpp"
#include "core/kernels/swiglu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace mylos::families {
namespace {

PackedSequences packed_sequences(const Batch& batch) {
  return {batch.sample_starts(), batch.sample_ids(), batch.shape().longest, batch.host_sample_starts()};
}

std::string layer_name(std::size_t index) { return fmt::format("model.layers.{}.", index); }

/// Rows of the array in which attention accumulates the tiles of long sequences; 0 if `batch` has none.
template <class T>
std::size_t partial_rows(const LlamaShape& shape, const BatchShape& batch) {
  const bool needed = precision_of<T> != Precision::float32 && shape.attention == AttentionKernel::portable &&
                      batch.longest > static_cast<std::size_t>(longest_attention_tile);
  return needed ? batch.rows : 0;
}

/// Returns the largest number of columns that a backward pass sums: those of norms, and of biases.
std::size_t summed_columns(const LlamaShape& shape) {
  return std::max({shape.hidden, shape.head_norms ? shape.head_size : 0, shape.qkv_bias ? shape.qkv_columns() : 0,
                   shape.mlp_bias ? 2 * shape.feed_forward : 0});
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
  builder.unit(fmt::format("layer.{}", index));
  const auto add = [&](const char* projection, std::size_t in, std::size_t out, bool has_bias) {
    nn::add_linear_tensors(builder, name + projection, in, out, {Initializer::Kind::normal, shape.initializer_range},
                           has_bias ? std::optional(Initializer{}) : std::nullopt);
  };
  builder.stack(true);
  add("self_attn.q_proj", hidden, shape.query_columns(), shape.qkv_bias);
  add("self_attn.k_proj", hidden, key_columns, shape.qkv_bias);
  add("self_attn.v_proj", hidden, key_columns, shape.qkv_bias);
  builder.stack(false);
  add("self_attn.o_proj", shape.query_columns(), hidden, shape.output_bias);
  builder.stack(true);
  add("mlp.gate_proj", hidden, shape.feed_forward, shape.mlp_bias);
  add("mlp.up_proj", hidden, shape.feed_forward, shape.mlp_bias);
  builder.stack(false);
  add("mlp.down_proj", shape.feed_forward, hidden, shape.mlp_bias);
  if (shape.head_norms) {
    for (const char* norm : {"self_attn.q_norm", "self_attn.k_norm"}) {
      add_rms_norm_row(builder, name + norm, shape.head_size);
    }
  }
  add_rms_norm_row(builder, name + "input_layernorm", hidden);
  add_rms_norm_row(builder, name + "post_attention_layernorm", hidden);
}

template <class T>
LlamaLayer<T>::LlamaLayer(const ParameterTable& table, const LlamaShape& shape, std::size_t index)
    : shape_(shape), attention_(attention_shape(shape, index)) {
  const std::string name = layer_name(index);
  query_key_value_ = nn::find_linear(table, name + "self_attn.q_proj", 3, shape.qkv_bias);
  attention_output_ = nn::find_linear(table, name + "self_attn.o_proj", 1, shape.output_bias);
  gate_up_ = nn::find_linear(table, name + "mlp.gate_proj", 2, shape.mlp_bias);
  down_ = nn::find_linear(table, name + "mlp.down_proj", 1, shape.mlp_bias);
  if (shape.head_norms) {
    query_norm_ = table.find(name + "self_attn.q_norm.weight");
    key_norm_ = table.find(name + "self_attn.k_norm.weight");
  }
  attention_norm_ = table.find(name + "input_layernorm.weight");
  mlp_norm_ = table.find(name + "post_attention_layernorm.weight");
}

template <class T>
LlamaLayerActivations<T> LlamaLayer<T>::take_activations(Arena& arena, const LlamaShape& shape, std::size_t rows,
                                                         nn::Recompute recompute,
                                                         const LlamaLayerActivations<T>* before) {
  LlamaLayerActivations<T> taken = before == nullptr ? LlamaLayerActivations<T>{} : *before;
  taken.attention_norm.input = arena.matrix<T>(rows, shape.hidden);
  if (before == nullptr || recompute == nn::Recompute::none) {
    taken.qkv = arena.matrix<T>(rows, shape.qkv_columns());
    if (shape.head_norms) taken.heads = arena.matrix<T>(rows, shape.normed_columns());
  }
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
          .column_sums = arena.vector<float>(column_sum_workspace(rows, summed_columns(shape)))};
}

template <class T>
std::vector<GemmProduct> LlamaLayer<T>::products(const LlamaShape& shape, std::size_t rows,
                                                 ParameterStore::Purpose purpose) {
  const std::size_t hidden = shape.hidden, feed_forward = shape.feed_forward;
  const auto epilogue = [](bool has_bias) { return has_bias ? EpilogueKind::bias : EpilogueKind::none; };
  const EpilogueKind of_mlp = epilogue(shape.mlp_bias);
  std::vector<GemmProduct> all;
  for (nn::LinearProducts linear :
       {nn::LinearProducts{
            .name = "qkv", .in = hidden, .out = shape.qkv_columns(), .forward = epilogue(shape.qkv_bias)},
        nn::LinearProducts{.name = "attention-output",
        .in = shape.query_columns(),
        .out = hidden,
        .forward = epilogue(shape.output_bias)},
        nn::LinearProducts{.name = "gate-up", .in = hidden, .out = 2 * feed_forward, .forward = of_mlp},
        nn::LinearProducts{.name = "down", .in = feed_forward, .out = hidden, .forward = of_mlp}}) {
    linear.precision = precision_of<T>;
    linear.count = shape.layers;
    for (const GemmProduct& product : nn::linear_products(linear, rows, purpose)) all.push_back(product);
  }
  return all;
}

template <class T>
nn::UnitFlops LlamaLayer<T>::training_flops(const LlamaShape& shape, std::size_t index, const BatchShape& batch,
                                            nn::Recompute recompute) {
  const auto hidden = static_cast<double>(shape.hidden), feed_forward = static_cast<double>(shape.feed_forward);
  const auto queries = static_cast<double>(shape.query_columns());
  const double length = static_cast<double>(batch.rows) / static_cast<double>(batch.samples);
  const double qkv = hidden * static_cast<double>(shape.qkv_columns()), down = hidden * feed_forward;
  // Two products per head for each pair of a token and one it attends to.
  const double scores = 2.0 * queries * attention::mean_visible_keys(attention_shape(shape, index), length);
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
  if (!attends_to(cache)) return nn::linear_forward<T>(pass, linear, x, y);
  const ParameterStore& parameters = pass.parameters;
  few_rows_product<T, T>(
      pass.space, x, parameters.stacked_matrix<T>(linear.weight, linear.stacked), y,
      linear.has_bias ? parameters.stacked_values<T>(linear.bias, linear.stacked) : ConstVector<T>());
}

template <class T>
void LlamaLayer<T>::project(const nn::Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
                            const Matrix<T>& normal, const LlamaCache<T>* cache) const {
  multiply(pass, query_key_value_, normal, saved.qkv, cache);
  if (shape_.head_norms) head_norms<T>(pass.space, head_norms_of(pass), saved.qkv, saved.heads);
  rotate<T>(pass.space, tokens.rotary, shape_.heads + shape_.key_value_heads, Rotation::forward, saved.qkv);
}

template <class T>
void LlamaLayer<T>::attend(const nn::Pass& pass, const LlamaTokens& tokens, const LlamaLayerActivations<T>& saved,
                           const LlamaCache<T>* cache) const {
  if (cache != nullptr) store_keys_values<T>(pass.space, attention_, saved.qkv, cache->rows, cache->layer);
  if (attends_to(cache)) {
    return cached_attention<T>(pass.space, attention_, saved.qkv, cache->rows, cache->layer, cache->workspace,
                               saved.context);
  }
  attention_forward<T>(pass.space, attention_, packed_sequences(tokens.batch), {}, saved.qkv, saved.context,
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
  nn::linear_gradients<T>(pass, down_, work.dactivation, dx, work.column_sums);
  if (nn::reads_input(pass, gate_up_)) {
    rms_norm_again<T>(pass.space, norm(pass, mlp_norm_), saved.mlp_norm, work.normal);
  }
  nn::linear_gradients<T>(pass, gate_up_, work.normal, saved.gate_up, work.column_sums);
  nn::linear_input_gradient<T>(pass, gate_up_, saved.gate_up, 0.0f, work.normal);
  rms_norm_backward<T>(pass.space, norm(pass, mlp_norm_), saved.mlp_norm, work.normal, dx,
                       pass.parameters.gradient(mlp_norm_), work.column_sums);
}

template <class T>
void LlamaLayer<T>::attention_part_backward(const nn::Pass& pass, const LlamaTokens& tokens,
                                            const LlamaLayerActivations<T>& saved, const LlamaLayerWorkspace<T>& work,
                                            const Matrix<T>& dx) const {
  nn::linear_gradients<T>(pass, attention_output_, saved.context, dx, work.column_sums);
  nn::linear_input_gradient<T>(pass, attention_output_, dx, 0.0f, work.dcontext);
  attention_backward<T>(pass.space, attention_, packed_sequences(tokens.batch), {}, saved.qkv, saved.context,
                        saved.log_sum_exp, work.dcontext, work.dqkv, work.row_sums, work.partial_dqkv);
  rotate<T>(pass.space, tokens.rotary, shape_.heads + shape_.key_value_heads, Rotation::backward, work.dqkv);
  if (shape_.head_norms) {
    head_norms_backward<T>(pass.space, head_norms_of(pass), saved.heads, work.dqkv,
                           pass.parameters.gradient(query_norm_), pass.parameters.gradient(key_norm_),
                           work.column_sums);
  }
  if (nn::reads_input(pass, query_key_value_)) {
    rms_norm_again<T>(pass.space, norm(pass, attention_norm_), saved.attention_norm, work.normal);
  }
  nn::linear_gradients<T>(pass, query_key_value_, work.normal, work.dqkv, work.column_sums);
  if (pass.is_first_trained && !pass.parameters.trains(attention_norm_)) return;
  nn::linear_input_gradient<T>(pass, query_key_value_, work.dqkv, 0.0f, work.normal);
  rms_norm_backward<T>(pass.space, norm(pass, attention_norm_), saved.attention_norm, work.normal, dx,
                       pass.parameters.gradient(attention_norm_), work.column_sums);
}

template class LlamaLayer<float>;
template class LlamaLayer<bfloat16>;
template class LlamaLayer<half>;

}  // namespace mylos::families
