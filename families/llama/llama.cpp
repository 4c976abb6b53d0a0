#include "families/llama/llama.hpp"

#include "core/element_type.hpp"
#include "core/kernels/largest_column.hpp"
#include "families/llama/llama_layer.hpp"

#include <algorithm>
#include <vector>

namespace mylos::families {
namespace {

using Purpose = ParameterStore::Purpose;

constexpr const char* embedding_row = "model.embed_tokens.weight";
constexpr const char* head_row = "lm_head.weight";

ParameterTable make_llama_table(const LlamaShape& shape) {
  check_shape(shape);
  const Initializer normal{Initializer::Kind::normal, shape.initializer_range};
  ParameterTable::Builder builder;
  builder.unit("embeddings").tensor(embedding_row, {shape.vocabulary, shape.hidden}, normal);
  for (std::size_t layer = 0; layer < shape.layers; ++layer) LlamaLayer<float>::add_rows(builder, shape, layer);
  builder.unit("head");
  if (shape.tied) {
    builder.borrow("embeddings");
  } else {
    builder.tensor(head_row, {shape.vocabulary, shape.hidden}, normal);
  }
  add_rms_norm_row(builder, "model.norm", shape.hidden);
  return builder.build();
}

template <class T>
class Llama final : public LlamaModel {
 public:
  explicit Llama(const LlamaShape& shape)
      : shape_(shape),
        frequencies_(rotary_frequencies(shape)),
        table_(make_llama_table(shape)),
        embeddings_(table_.find(embedding_row)),
        norm_(table_.find("model.norm.weight")),
        head_(nn::find_vocabulary_head(table_, shape.tied ? embedding_row : head_row)) {
    for (std::size_t layer = 0; layer < shape.layers; ++layer) layers_.emplace_back(table_, shape, layer);
  }

  const ParameterTable& table() const override { return table_; }

  void plan(Arena& arena, const BatchShape& shape, Purpose purpose, nn::Recompute recompute) const override {
    if (purpose == Purpose::training) {
      take_training(arena, shape, recompute);
    } else {
      take_prediction(arena, shape.rows);
    }
  }

  bool can_recompute(nn::Recompute) const override { return true; }

  std::vector<GemmProduct> products(const BatchShape& shape, Purpose purpose) const override;

  std::size_t scratch_bytes(const BatchShape& batch, Purpose purpose, const TeamProcessor& processor) const override {
    const AttentionShape attention = attention_shape(shape_);
    const std::size_t forward = attention_forward_scratch<T>(attention, batch.samples, batch.longest, processor);
    if (purpose == Purpose::inference) return forward;
    return std::max(forward, attention_backward_scratch<T>(attention, batch.samples, batch.longest, processor));
  }

  void prepare(const ExecutionSpace& space, const BatchShapes& batches, Purpose purpose) const override {
    prepare_attention<T>(space, attention_shape(shape_), batches, purpose == Purpose::training);
  }

  void train(const nn::Pass& pass, const Batch& batch, float scale, const Vector<float>& losses) const override;
  Matrix<float> predict(const nn::Pass& pass, const Batch& batch, const Vector<float>& losses) const override;
  void logits(const nn::Pass& pass, const Batch& batch, const nn::LogitsAction& action) const override;
  std::vector<double> unit_flops(const BatchShape& shape, nn::Recompute recompute) const override;

 private:
  struct Forward {
    Matrix<float> rotary;  ///< (T, D)
    std::vector<LlamaLayerActivations<T>> layers;
    RmsNormSaved<T> norm;  ///< for the head
    nn::VocabularyWorkspace<T> vocabulary;
    LlamaLayerScratch<T> scratch;  ///< after the forward pass, `normal` holds the head's input
  };
  struct Training {
    Forward forward;
    Matrix<T> dx;  ///< (T, H), gradient passed down through the layers
    LlamaLayerWorkspace<T> workspace;
  };
  struct Prediction {
    Forward forward;
    Vector<float> likeliest;  ///< (T)
  };

  Training take_training(Arena& arena, const BatchShape& batch, nn::Recompute recompute) const;
  Prediction take_prediction(Arena& arena, std::size_t rows) const;

  /// Runs all layers up to the head's input, which is stored in memory.scratch.normal. The head's unit stays acquired.
  void forward(const nn::Pass& pass, const Batch& batch, const Forward& memory) const;
  void backward(const nn::Pass& pass, const Batch& batch, const Training& memory) const;

  RmsNormParameters<T> norm(const nn::Pass& pass) const {
    return {pass.parameters.values<T>(norm_), shape_.rms_norm_epsilon};
  }
  std::size_t embeddings_unit() const { return table_.tensor(embeddings_).unit; }
  std::size_t head_unit() const { return table_.tensor(norm_).unit; }

  LlamaShape shape_;
  RotaryFrequencies frequencies_;
  ParameterTable table_;
  std::size_t embeddings_, norm_;
  nn::VocabularyHead head_;
  std::vector<LlamaLayer<T>> layers_;
};

template <class T>
typename Llama<T>::Training Llama<T>::take_training(Arena& arena, const BatchShape& batch,
                                                    nn::Recompute recompute) const {
  const std::size_t rows = batch.rows;
  Training memory{};
  Forward& forward = memory.forward;
  forward.rotary = arena.matrix<float>(rows, shape_.head_size);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const LlamaLayerActivations<T>* const before = layer == 0 ? nullptr : &forward.layers.back();
    forward.layers.push_back(LlamaLayer<T>::take_activations(arena, shape_, rows, recompute, before));
  }
  forward.norm = {arena.matrix<T>(rows, shape_.hidden), arena.vector<float>(rows)};
  forward.vocabulary = nn::take_vocabulary_workspace<T>(arena, head_, rows, Purpose::training);
  memory.dx = arena.matrix<T>(rows, shape_.hidden);
  memory.workspace = LlamaLayer<T>::take_workspace(arena, shape_, batch);
  forward.scratch = memory.workspace.forward();
  return memory;
}

/// Allocates memory for prediction. Nothing is kept: all layers, and the head's norm, reuse the memory of one layer.
template <class T>
typename Llama<T>::Prediction Llama<T>::take_prediction(Arena& arena, std::size_t rows) const {
  Prediction memory{};
  Forward& forward = memory.forward;
  forward.rotary = arena.matrix<float>(rows, shape_.head_size);
  forward.layers.assign(layers_.size(), LlamaLayer<T>::take_activations(arena, shape_, rows));
  forward.norm = forward.layers.front().attention_norm;
  forward.vocabulary = nn::take_vocabulary_workspace<T>(arena, head_, rows, Purpose::inference);
  forward.scratch = LlamaLayer<T>::take_scratch(arena, shape_, rows);
  memory.likeliest = arena.vector<float>(rows);
  return memory;
}

template <class T>
void Llama<T>::forward(const nn::Pass& pass, const Batch& batch, const Forward& memory) const {
  namespace names = language_modeling;
  rotary_table(pass.space, batch.positions(), frequencies_, memory.rotary);
  const LlamaTokens tokens{batch, memory.rotary};
  pass.hooks.acquire(embeddings_unit());
  embedding_lookup<T>(pass.space, batch.integers(names::tokens), pass.parameters.matrix<T>(embeddings_), false,
                      memory.layers.front().attention_norm.input, batch.distinct(names::tokens));
  pass.hooks.release(embeddings_unit());
  ConstMatrix<T> residual;  // empty for the first layer
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const LlamaLayerActivations<T>& saved = memory.layers[layer];
    const bool is_last = layer + 1 == layers_.size();
    pass.hooks.acquire(layers_[layer].unit());
    layers_[layer].forward(pass, tokens, residual, saved, memory.scratch,
                           is_last ? memory.norm.input : memory.layers[layer + 1].attention_norm.input);
    pass.hooks.release(layers_[layer].unit());
    residual = saved.mlp_norm.input;
  }
  pass.hooks.acquire(head_unit());
  residual_rms_norm<T>(pass.space, residual, norm(pass), memory.norm, memory.scratch.normal);
}

template <class T>
void Llama<T>::train(const nn::Pass& pass, const Batch& batch, float scale, const Vector<float>& losses) const {
  pass.arena.rewind(0);
  const Training memory = take_training(pass.arena, batch.shape(), pass.recompute);
  forward(pass, batch, memory.forward);
  const Matrix<T>& normal = memory.workspace.normal;  // overwritten with its gradient
  nn::vocabulary_loss<T>(pass, head_, batch, normal, batch.integers(language_modeling::labels), scale,
                         memory.forward.vocabulary, losses, normal);
  backward(pass, batch, memory);
}

template <class T>
void Llama<T>::backward(const nn::Pass& pass, const Batch& batch, const Training& memory) const {
  const LlamaTokens tokens{batch, memory.forward.rotary};
  const LlamaLayerWorkspace<T>& workspace = memory.workspace;
  Kokkos::deep_copy(pass.space, memory.dx, T(0.0f));
  rms_norm_backward<T>(pass.space, norm(pass), memory.forward.norm, workspace.normal, memory.dx,
                       pass.parameters.gradient(norm_), workspace.column_sums);
  pass.hooks.release(head_unit());
  pass.hooks.gradients_ready(head_unit());
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    const LlamaLayerActivations<T>& saved = memory.forward.layers[layer];
    pass.hooks.acquire(layers_[layer].unit());
    // The shared buffers still hold the last layer's activations, so only the other layers need recomputation.
    if (layer + 1 < layers_.size()) layers_[layer].restore(pass, tokens, saved, memory.forward.scratch);
    layers_[layer].backward(pass, tokens, saved, workspace, memory.dx);
    pass.hooks.release(layers_[layer].unit());
    pass.hooks.gradients_ready(layers_[layer].unit());
  }
  pass.hooks.acquire(embeddings_unit());
  embedding_gradient<T>(pass.space, batch.groups(language_modeling::tokens), memory.dx,
                        pass.parameters.gradient_matrix(embeddings_), shape_.padding_token);
  pass.hooks.release(embeddings_unit());
  pass.hooks.gradients_ready(embeddings_unit());
}

template <class T>
Matrix<float> Llama<T>::predict(const nn::Pass& pass, const Batch& batch, const Vector<float>& losses) const {
  pass.arena.rewind(0);
  const Prediction memory = take_prediction(pass.arena, batch.shape().rows);
  const nn::VocabularyWorkspace<T>& vocabulary = memory.forward.vocabulary;
  forward(pass, batch, memory.forward);
  nn::for_each_logits_chunk<T>(
      pass, head_, memory.forward.scratch.normal, vocabulary, [&](std::size_t first, const ConstMatrix<float>& logits) {
        largest_column(pass.space, logits, slice(memory.likeliest, first, first + logits.extent(0)));
        if (losses.extent(0) == 0) return;
        nn::chunk_losses<T>(pass, batch.integers(language_modeling::labels), first, logits, vocabulary);
      });
  pass.hooks.release(head_unit());
  if (losses.extent(0) > 0) nn::sum_sample_losses(pass.space, batch.sample_starts(), vocabulary.row_losses, losses);
  return Matrix<float>(memory.likeliest.data(), batch.shape().rows, 1);
}

template <class T>
void Llama<T>::logits(const nn::Pass& pass, const Batch& batch, const nn::LogitsAction& action) const {
  pass.arena.rewind(0);
  const Prediction memory = take_prediction(pass.arena, batch.shape().rows);
  forward(pass, batch, memory.forward);
  nn::for_each_logits_chunk<T>(pass, head_, memory.forward.scratch.normal, memory.forward.vocabulary, action);
  pass.hooks.release(head_unit());
}

/// The head's products are computed in chunks of rows: a number of full chunks, and one of the remaining rows.
template <class T>
std::vector<GemmProduct> Llama<T>::products(const BatchShape& shape, Purpose purpose) const {
  std::vector<GemmProduct> all = LlamaLayer<T>::products(shape_, shape.rows, purpose);
  const std::size_t pieces = shape.rows / head_.chunk, rest = shape.rows % head_.chunk;
  nn::LinearProducts head{.name = "head",
                          .in = shape_.hidden,
                          .out = shape_.vocabulary,
                          .precision = precision_of<T>,
                          .has_float_result = true,
                          .count = pieces};
  const auto add = [&](std::size_t rows) {
    for (const GemmProduct& product : nn::linear_products(head, rows, purpose)) all.push_back(product);
  };
  if (pieces > 0) add(head_.chunk);
  if (pieces > 0) head.name = "head-rest";
  head.count = 1;
  if (rest > 0) add(rest);
  return all;
}

template <class T>
std::vector<double> Llama<T>::unit_flops(const BatchShape& shape, nn::Recompute recompute) const {
  std::vector<double> flops(table_.units().size());  // embedding lookups need no products
  for (const LlamaLayer<T>& layer : layers_) {
    // The last layer is not recomputed: its activations are still in memory when its backward pass begins.
    const bool is_last = &layer == &layers_.back();
    flops[layer.unit()] = LlamaLayer<T>::training_flops(shape_, shape, is_last ? nn::Recompute::none : recompute);
  }
  flops[head_unit()] = 6.0 * static_cast<double>(shape.rows) * static_cast<double>(shape_.vocabulary) *
                       static_cast<double>(shape_.hidden);
  return flops;
}

}  // namespace

std::unique_ptr<LlamaModel> make_llama(const LlamaShape& shape, Precision precision) {
  return with_type(precision,
                   [&]<class T>(T) -> std::unique_ptr<LlamaModel> { return std::make_unique<Llama<T>>(shape); });
}

}  // namespace mylos::families
