#include "families/llama/llama_body.hpp"

#include <algorithm>

namespace mylos::families {

template <class T>
void LlamaUnits<T>::find_tensors(const ParameterTable& table) {
  frequencies = rotary_frequencies(shape);
  embeddings = table.find(llama_embeddings);
  norm = table.find("model.norm.weight");
  layers.clear();
  for (std::size_t layer = 0; layer < shape.layers; ++layer) layers.emplace_back(table, shape, layer);
}

template <class T>
void LlamaPass<T>::take_training(Arena& arena, const BatchShape& batch, nn::Recompute recompute,
                                 std::size_t first_trained) {
  const LlamaShape& shape = units_.shape;
  rotary_ = arena.matrix<float>(batch.rows, shape.head_size);
  const std::size_t below = std::clamp<std::size_t>(first_trained, 1, shape.layers) - 1;
  for (std::size_t layer = below; layer < shape.layers; ++layer) {
    const LlamaLayerActivations<T>* const before = layer == below ? nullptr : &layers_.back();
    layers_.push_back(LlamaLayer<T>::take_activations(arena, shape, batch.rows, recompute, before));
  }
  const LlamaLayerActivations<T> first = layers_.front();
  layers_.insert(layers_.begin(), below, first);
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
    return embedding_lookup<T>(pass.space, batch.integers(nn::names::tokens),
                               pass.parameters.matrix<T>(units_.embeddings), false,
                               layers_.front().attention_norm.input, batch.distinct(nn::names::tokens));
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
  embedding_gradient<T>(pass.space, batch.groups(nn::names::tokens), dx_,
                        pass.parameters.gradient_matrix(units_.embeddings), units_.shape.padding_token);
}

namespace {

template <class T>
class LlamaBody final : public nn::Body<T> {
 public:
  using typename nn::Body<T>::Purpose;

  explicit LlamaBody(const LlamaShape& shape) : units_{shape} { check_shape(shape); }

  std::size_t width() const override { return shape().hidden; }
  void add_units(ParameterTable::Builder& builder) const override {
    const Initializer normal{Initializer::Kind::normal, shape().initializer_range};
    builder.unit("embeddings").tensor(llama_embeddings, {shape().vocabulary, shape().hidden}, normal);
    for (std::size_t layer = 0; layer < shape().layers; ++layer) LlamaLayer<T>::add_rows(builder, shape(), layer);
  }
  void add_final_tensors(ParameterTable::Builder& builder) const override {
    add_rms_norm_row(builder, "model.norm", shape().hidden);
  }
  void find_tensors(const ParameterTable& table) override { units_.find_tensors(table); }

  std::unique_ptr<nn::BodyPass<T>> begin(Arena& arena, const BatchShape& batch, Purpose purpose,
                                         nn::Recompute recompute, std::size_t first_trained) const override {
    auto pass = std::make_unique<LlamaPass<T>>(units_);
    if (purpose == Purpose::training && first_trained <= shape().layers + 1) {
      pass->take_training(arena, batch, recompute, first_trained);
    } else {
      pass->take_prediction(arena, batch.rows);
    }
    return pass;
  }

  std::vector<GemmProduct> products(const BatchShape& batch, Purpose purpose) const override {
    return LlamaLayer<T>::products(shape(), batch.rows, purpose);
  }
  nn::UnitFlops training_flops(std::size_t unit, const BatchShape& batch, nn::Recompute recompute) const override {
    if (unit == 0) return {};  // lookups need no products
    return LlamaLayer<T>::training_flops(shape(), unit - 1, batch, recompute);
  }
  std::size_t scratch_bytes(const BatchShape& batch, Purpose purpose, const TeamProcessor& processor) const override {
    const AttentionShape attention = attention_shape(shape());
    const std::size_t forward = attention_forward_scratch<T>(attention, batch.samples, batch.longest, processor);
    if (purpose == Purpose::inference) return forward;
    return std::max(forward, attention_backward_scratch<T>(attention, batch.samples, batch.longest, processor));
  }
  void prepare(const ExecutionSpace& space, const BatchShapes& batches, Purpose purpose) const override {
    const AttentionShape first = attention_shape(shape(), 0), last = attention_shape(shape());
    prepare_attention<T>(space, last, batches, purpose == Purpose::training);
    if (first.window != last.window) {
      prepare_attention<T>(space, first, batches, purpose == Purpose::training);
    }
  }

 private:
  const LlamaShape& shape() const { return units_.shape; }

  LlamaUnits<T> units_;
};

}  // namespace

template <class T>
std::unique_ptr<nn::Body<T>> make_llama_body(const LlamaShape& shape) {
  return std::make_unique<LlamaBody<T>>(shape);
}

#define MYLOS_INSTANTIATE(T)     \
  template struct LlamaUnits<T>; \
  template class LlamaPass<T>;   \
  template std::unique_ptr<nn::Body<T>> make_llama_body<T>(const LlamaShape&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos::families
