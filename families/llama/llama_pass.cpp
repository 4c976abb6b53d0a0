#include "families/llama/llama_pass.hpp"

#include "families/llama/llama_body.hpp"

namespace mylos::families {
namespace {
namespace names = language_modeling;
}  // namespace

template <class T>
void LlamaUnits<T>::find_tensors(const ParameterTable& table) {
  frequencies = rotary_frequencies(shape);
  embeddings = table.find(llama_embeddings);
  norm = table.find("model.norm.weight");
  for (std::size_t layer = 0; layer < shape.layers; ++layer) layers.emplace_back(table, shape, layer);
}

template <class T>
void LlamaPass<T>::take_training(Arena& arena, const BatchShape& batch, nn::Recompute recompute) {
  const LlamaShape& shape = units_.shape;
  rotary_ = arena.matrix<float>(batch.rows, shape.head_size);
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    const LlamaLayerActivations<T>* const before = layer == 0 ? nullptr : &layers_.back();
    layers_.push_back(LlamaLayer<T>::take_activations(arena, shape, batch.rows, recompute, before));
  }
  norm_ = {arena.matrix<T>(batch.rows, shape.hidden), arena.vector<float>(batch.rows)};
  dx_ = arena.matrix<T>(batch.rows, shape.hidden);
  workspace_ = LlamaLayer<T>::take_workspace(arena, shape, batch);
  scratch_ = workspace_.forward();
  this->output_ = {scratch_.normal, scratch_.normal, workspace_.column_sums};
}

template <class T>
void LlamaPass<T>::take_prediction(Arena& arena, std::size_t rows) {
  const LlamaShape& shape = units_.shape;
  rotary_ = arena.matrix<float>(rows, shape.head_size);
  layers_.assign(shape.layers, LlamaLayer<T>::take_activations(arena, shape, rows));
  norm_ = layers_.front().attention_norm;
  scratch_ = LlamaLayer<T>::take_scratch(arena, shape, rows);
  this->output_ = {scratch_.normal, {}, {}};
}

template <class T>
void LlamaPass<T>::forward(const nn::Pass& pass, const Batch& batch, std::size_t unit) {
  if (unit == 0) {
    rotary_table(pass.space, batch.positions(), units_.frequencies, rotary_);
    return embedding_lookup<T>(pass.space, batch.integers(names::tokens), pass.parameters.matrix<T>(units_.embeddings),
                               false, layers_.front().attention_norm.input, batch.distinct(names::tokens));
  }
  const std::size_t layer = unit - 1;
  const bool is_last = unit == layers_.size();
  const ConstMatrix<T> residual = layer == 0 ? ConstMatrix<T>() : ConstMatrix<T>(layers_[layer - 1].mlp_norm.input);
  std::optional<LlamaCache<T>> cache;
  if (caches_) cache.emplace(LlamaCache<T>{caches_->layers[layer], caches_->rows, caches_->workspace});
  units_.layers[layer].forward(pass, {batch, rotary_}, residual, layers_[layer], scratch_,
                               is_last ? norm_.input : layers_[unit].attention_norm.input, cache ? &*cache : nullptr);
}

template <class T>
void LlamaPass<T>::finish(const nn::Pass& pass, const Batch&) {
  residual_rms_norm<T>(pass.space, layers_.back().mlp_norm.input, units_.norm_of(pass), norm_, scratch_.normal);
}

template <class T>
void LlamaPass<T>::finish_backward(const nn::Pass& pass, const Batch&) {
  Kokkos::deep_copy(pass.space, dx_, T(0.0f));
  rms_norm_backward<T>(pass.space, units_.norm_of(pass), norm_, this->output_.dx, dx_,
                       pass.parameters.gradient(units_.norm), workspace_.column_sums);
}

template <class T>
void LlamaPass<T>::restore(const nn::Pass& pass, const Batch& batch, std::size_t unit) {
  if (unit > 0) units_.layers[unit - 1].restore(pass, {batch, rotary_}, layers_[unit - 1], scratch_);
}

template <class T>
void LlamaPass<T>::backward(const nn::Pass& pass, const Batch& batch, std::size_t unit) {
  if (unit > 0) {
    return units_.layers[unit - 1].backward(pass, {batch, rotary_}, layers_[unit - 1], workspace_, dx_);
  }
  embedding_gradient<T>(pass.space, batch.groups(names::tokens), dx_,
                        pass.parameters.gradient_matrix(units_.embeddings), units_.shape.padding_token);
}

#define MYLOS_INSTANTIATE(T)     \
  template struct LlamaUnits<T>; \
  template class LlamaPass<T>;
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::families
