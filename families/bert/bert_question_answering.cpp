#include "families/bert/bert_question_answering.hpp"

#include "core/base/error.hpp"
#include "core/element_type.hpp"
#include "core/kernels/activation.hpp"
#include "core/kernels/cross_entropy.hpp"
#include "families/bert/bert_embeddings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace mylos::families {
namespace {

ParameterTable make_table(const BertShape& shape) {
  require(shape.heads > 0 && shape.hidden % shape.heads == 0,
          fmt::format("BERT: hidden size {} is not a multiple of {} heads", shape.hidden, shape.heads));
  ParameterTable::Builder builder;
  BertEmbeddings<float>::add_rows(builder, shape);
  for (std::size_t layer = 0; layer < shape.layers; ++layer) BertLayer<float>::add_rows(builder, shape, layer);
  builder.unit("head");
  nn::add_linear_tensors(builder, "qa_outputs", shape.hidden, 2, shape.initializer_range);
  return builder.build();
}

template <class T>
class BertQuestionAnswering final : public nn::Model {
 public:
  explicit BertQuestionAnswering(const BertShape& shape)
      : shape_(shape),
        table_(make_table(shape)),
        embeddings_(table_, shape),
        head_(nn::find_linear(table_, "qa_outputs")) {
    for (std::size_t layer = 0; layer < shape.layers; ++layer) layers_.emplace_back(table_, shape, layer);
  }

  const ParameterTable& table() const override { return table_; }

  void plan(Arena& arena, const BatchShape& shape, ParameterStore::Purpose purpose,
            nn::Recompute recompute) const override {
    if (purpose == ParameterStore::Purpose::training) {
      take_training(arena, shape.rows, recompute);
    } else {
      take_prediction(arena, shape.rows);
    }
  }

  bool can_recompute(nn::Recompute) const override { return true; }

  std::vector<GemmProduct> products(const BatchShape& shape, ParameterStore::Purpose purpose) const override {
    std::vector<GemmProduct> all = BertLayer<T>::products(shape_, shape.rows, purpose);
    const nn::LinearProducts head{.name = "head",
                                  .in = shape_.hidden,
                                  .out = 2,
                                  .precision = precision_of<T>,
                                  .forward = EpilogueKind::bias,
                                  .has_float_result = true};
    for (const GemmProduct& product : nn::linear_products(head, shape.rows, purpose)) all.push_back(product);
    return all;
  }

  std::size_t scratch_bytes(const BatchShape& shape, ParameterStore::Purpose purpose,
                            const TeamProcessor& processor) const override {
    return BertLayer<T>::scratch_bytes(shape_, shape, purpose, processor);
  }

  void prepare(const ExecutionSpace& space, const BatchShapes& batches,
               ParameterStore::Purpose purpose) const override {
    prepare_attention<T>(space, attention_shape(shape_), batches, purpose == ParameterStore::Purpose::training);
  }

  void train(const nn::Pass& pass, const Batch& batch, float scale, const Vector<float>& losses) const override;
  Matrix<float> predict(const nn::Pass& pass, const Batch& batch, const Vector<float>& losses) const override;
  std::vector<double> unit_flops(const BatchShape& shape, nn::Recompute recompute) const override;

 private:
  struct HeadActivations {
    Vector<float> bias;    ///< (2)
    Matrix<float> logits;  ///< (T, 2)
  };
  struct Training {
    typename BertEmbeddings<T>::Activations embeddings;
    std::vector<BertLayerActivations<T>> layers;
    HeadActivations head;
    Matrix<T> dlogits;  ///< (T, 2)
    Matrix<T> doutput;  ///< (T, H), gradient passed down through the layers
    BertLayerWorkspace<T> workspace;
  };
  /// Memory for prediction. Nothing is kept: all layers reuse the memory of one.
  struct Prediction {
    typename BertEmbeddings<T>::Activations embeddings;
    BertLayerActivations<T> layer;
    BertLayerScratch<T> scratch;
    HeadActivations head;
  };

  HeadActivations take_head(Arena& arena, std::size_t rows) const {
    return {arena.vector<float>(2), arena.matrix<float>(rows, 2)};
  }
  Training take_training(Arena& arena, std::size_t rows, nn::Recompute recompute) const;
  Prediction take_prediction(Arena& arena, std::size_t rows) const;

  void head_forward(const nn::Pass& pass, const ConstMatrix<T>& x, const HeadActivations& saved) const;
  void span_loss(const nn::Pass& pass, const Batch& batch, float scale, const Matrix<float>& logits,
                 const Vector<float>& losses, const Matrix<T>& dlogits) const;
  void forward(const nn::Pass& pass, const Batch& batch, const Training& memory) const;
  void backward(const nn::Pass& pass, const Batch& batch, const Training& memory) const;

  std::size_t head_unit() const { return table_.tensor(head_.weight).unit; }
  DropoutRates rates() const { return {shape_.hidden_dropout, shape_.attention_dropout}; }

  BertShape shape_;
  ParameterTable table_;
  BertEmbeddings<T> embeddings_;
  std::vector<BertLayer<T>> layers_;
  nn::Linear head_;
};

template <class T>
typename BertQuestionAnswering<T>::Training BertQuestionAnswering<T>::take_training(Arena& arena, std::size_t rows,
                                                                                    nn::Recompute recompute) const {
  Training memory{.embeddings = BertEmbeddings<T>::take_activations(arena, shape_, rows),
                  .layers = {},
                  .head = {},
                  .dlogits = {},
                  .doutput = {},
                  .workspace = {}};
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const BertLayerActivations<T>* const before = layer == 0 ? nullptr : &memory.layers.back();
    memory.layers.push_back(BertLayer<T>::take_activations(arena, shape_, rows, recompute, before));
  }
  memory.head = take_head(arena, rows);
  memory.dlogits = arena.matrix<T>(rows, 2);
  memory.doutput = arena.matrix<T>(rows, shape_.hidden);
  memory.workspace = BertLayer<T>::take_workspace(arena, shape_, rows);
  return memory;
}

template <class T>
typename BertQuestionAnswering<T>::Prediction BertQuestionAnswering<T>::take_prediction(Arena& arena,
                                                                                        std::size_t rows) const {
  Prediction memory{BertEmbeddings<T>::take_activations(arena, shape_, rows),
                    BertLayer<T>::take_activations(arena, shape_, rows),
                    BertLayer<T>::take_scratch(arena, shape_, rows), take_head(arena, rows)};
  // In-place is safe: a layer reads its input before it writes its output.
  memory.layer.output = memory.embeddings.output;
  return memory;
}

template <class T>
void BertQuestionAnswering<T>::head_forward(const nn::Pass& pass, const ConstMatrix<T>& x,
                                            const HeadActivations& saved) const {
  convert<T, float>(pass.space, pass.parameters.values<T>(head_.bias), saved.bias);
  const Epilogue<float> add_bias{EpilogueKind::bias, saved.bias, {}};
  pass.gemm.operator()<T, float>(pass.space, Transpose::no, x, Transpose::yes, pass.parameters.matrix<T>(head_.weight),
                                 0.0f, saved.logits, add_bias);
}

template <class T>
void BertQuestionAnswering<T>::span_loss(const nn::Pass& pass, const Batch& batch, float scale,
                                         const Matrix<float>& logits, const Vector<float>& losses,
                                         const Matrix<T>& dlogits) const {
  namespace names = question_answering;
  span_cross_entropy<T>(pass.space, batch.sample_starts(), logits, batch.integers(names::start_labels),
                        batch.integers(names::end_labels), scale, losses, dlogits, pass.loss_scale, pass.hits);
}

template <class T>
void BertQuestionAnswering<T>::train(const nn::Pass& pass, const Batch& batch, float scale,
                                     const Vector<float>& losses) const {
  pass.arena.rewind(0);
  const Training memory = take_training(pass.arena, batch.shape().rows, pass.recompute);
  forward(pass, batch, memory);
  span_loss(pass, batch, scale, memory.head.logits, losses, memory.dlogits);
  backward(pass, batch, memory);
}

template <class T>
void BertQuestionAnswering<T>::forward(const nn::Pass& pass, const Batch& batch, const Training& memory) const {
  pass.hooks.acquire(embeddings_.unit());
  embeddings_.forward(pass, batch, shape_.hidden_dropout, memory.embeddings);
  pass.hooks.release(embeddings_.unit());
  ConstMatrix<T> input = memory.embeddings.output;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    pass.hooks.acquire(layers_[layer].unit());
    layers_[layer].forward(pass, batch, rates(), input, memory.layers[layer], memory.workspace.forward());
    pass.hooks.release(layers_[layer].unit());
    input = memory.layers[layer].output;
  }
  pass.hooks.acquire(head_unit());
  head_forward(pass, input, memory.head);
}

template <class T>
void BertQuestionAnswering<T>::backward(const nn::Pass& pass, const Batch& batch, const Training& memory) const {
  const auto input_of = [&](std::size_t layer) -> ConstMatrix<T> {
    return layer == 0 ? memory.embeddings.output : memory.layers[layer - 1].output;
  };
  const Vector<float>& column_sums = memory.workspace.column_sums;
  nn::linear_gradients<T>(pass, head_, input_of(layers_.size()), memory.dlogits, column_sums);
  nn::linear_input_gradient<T>(pass, head_, memory.dlogits, 0.0f, memory.doutput);
  pass.hooks.release(head_unit());
  pass.hooks.gradients_ready(head_unit());
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    pass.hooks.acquire(layers_[layer].unit());
    // The shared buffers still hold the last layer's activations, so only the other layers need recomputation.
    if (layer + 1 < layers_.size()) {
      layers_[layer].restore(pass, batch, rates(), input_of(layer), memory.layers[layer], memory.workspace.forward());
    }
    layers_[layer].backward(pass, batch, rates(), input_of(layer), memory.layers[layer], memory.doutput,
                            memory.workspace, memory.doutput);
    pass.hooks.release(layers_[layer].unit());
    pass.hooks.gradients_ready(layers_[layer].unit());
  }
  pass.hooks.acquire(embeddings_.unit());
  embeddings_.backward(pass, batch, shape_.hidden_dropout, memory.embeddings, memory.doutput, column_sums);
  pass.hooks.release(embeddings_.unit());
  pass.hooks.gradients_ready(embeddings_.unit());
}

template <class T>
Matrix<float> BertQuestionAnswering<T>::predict(const nn::Pass& pass, const Batch& batch,
                                                const Vector<float>& losses) const {
  pass.arena.rewind(0);
  const Prediction memory = take_prediction(pass.arena, batch.shape().rows);
  pass.hooks.acquire(embeddings_.unit());
  embeddings_.forward(pass, batch, 0.0f, memory.embeddings);
  pass.hooks.release(embeddings_.unit());
  for (const BertLayer<T>& layer : layers_) {
    pass.hooks.acquire(layer.unit());
    layer.forward(pass, batch, {}, memory.embeddings.output, memory.layer, memory.scratch);
    pass.hooks.release(layer.unit());
  }
  pass.hooks.acquire(head_unit());
  head_forward(pass, memory.embeddings.output, memory.head);
  pass.hooks.release(head_unit());
  if (losses.extent(0) > 0) span_loss(pass, batch, 0.0f, memory.head.logits, losses, {});
  return memory.head.logits;
}

template <class T>
std::vector<double> BertQuestionAnswering<T>::unit_flops(const BatchShape& shape, nn::Recompute recompute) const {
  std::vector<double> flops(table_.units().size());  // embedding lookups need no products
  for (const BertLayer<T>& layer : layers_) {
    // The last layer is not recomputed: its activations are still in memory when its backward pass begins.
    const bool is_last = &layer == &layers_.back();
    flops[layer.unit()] = BertLayer<T>::training_flops(shape_, shape, is_last ? nn::Recompute::none : recompute);
  }
  flops[head_unit()] = 6.0 * static_cast<double>(shape.rows) * 2.0 * static_cast<double>(shape_.hidden);
  return flops;
}

}  // namespace

std::unique_ptr<nn::Model> make_bert_question_answering(const BertShape& shape, Precision precision) {
  return with_type(precision, [&]<class T>(T) -> std::unique_ptr<nn::Model> {
    return std::make_unique<BertQuestionAnswering<T>>(shape);
  });
}

}  // namespace mylos::families
