#include "families/bert/bert_body.hpp"

#include "core/base/error.hpp"
#include "core/kernels/embedding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace mylos::families {
namespace {

template <class T>
class BertEmbeddings {
 public:
  struct Activations {
    LayerNormSaved<T> norm;
    Matrix<T> output;  ///< (T, H)
  };

  /// Adds the embedding and LayerNorm tensors as the unit "embeddings".
  static void add_rows(ParameterTable::Builder& builder, const BertShape& shape);
  BertEmbeddings(const ParameterTable& table, const BertShape& shape);

  static Activations take_activations(Arena& arena, const BertShape& shape, std::size_t rows);

  /// Computes saved.output (T, H) from the batch's tokens, segments and positions.
  void forward(const nn::Pass& pass, const Batch& batch, float dropout, const Activations& saved) const;
  /// Adds the gradients of the tables, given doutput (T, H), which is overwritten.
  void backward(const nn::Pass& pass, const Batch& batch, float dropout, const Activations& saved,
                const Matrix<T>& doutput, const Vector<float>& column_sums) const;

 private:
  BertShape shape_;
  std::size_t words_, positions_, segments_;
  LayerNormTensors norm_;
};

constexpr std::uint32_t dropout_site = 0;

std::string embeddings_name(const BertShape& shape, std::string_view part) {
  return fmt::format("{}.embeddings.{}", shape.prefix, part);
}

template <class T>
void BertEmbeddings<T>::add_rows(ParameterTable::Builder& builder, const BertShape& shape) {
  const Initializer normal{Initializer::Kind::normal, shape.initializer_range};
  builder.unit("embeddings");
  builder.tensor(embeddings_name(shape, "word_embeddings.weight"), {shape.vocabulary, shape.hidden}, normal);
  builder.tensor(embeddings_name(shape, "position_embeddings.weight"), {shape.positions, shape.hidden}, normal);
  builder.tensor(embeddings_name(shape, "token_type_embeddings.weight"), {shape.token_types, shape.hidden}, normal);
  add_layer_norm_rows(builder, embeddings_name(shape, "LayerNorm"), shape.hidden);
}

template <class T>
BertEmbeddings<T>::BertEmbeddings(const ParameterTable& table, const BertShape& shape)
    : shape_(shape),
      words_(table.find(embeddings_name(shape, "word_embeddings.weight"))),
      positions_(table.find(embeddings_name(shape, "position_embeddings.weight"))),
      segments_(table.find(embeddings_name(shape, "token_type_embeddings.weight"))),
      norm_(find_layer_norm(table, embeddings_name(shape, "LayerNorm"))) {}

template <class T>
typename BertEmbeddings<T>::Activations BertEmbeddings<T>::take_activations(Arena& arena, const BertShape& shape,
                                                                            std::size_t rows) {
  return {take_layer_norm_saved<T>(arena, rows, shape.hidden), arena.matrix<T>(rows, shape.hidden)};
}

template <class T>
void BertEmbeddings<T>::forward(const nn::Pass& pass, const Batch& batch, float dropout,
                                const Activations& saved) const {
  namespace names = nn::names;
  const auto& parameters = pass.parameters;
  const auto add_table = [&](const ConstVector<std::int32_t>& indices, std::size_t distinct, std::size_t table,
                             bool accumulate) {
    embedding_lookup<T>(pass.space, indices, parameters.matrix<T>(table), accumulate, saved.norm.input, distinct);
  };
  add_table(batch.integers(names::tokens), batch.distinct(names::tokens), words_, false);
  add_table(batch.positions(), batch.shape().longest, positions_, true);
  add_table(batch.integers(names::segments), batch.distinct(names::segments), segments_, true);
  layer_norm_dropout<T>(pass.space, {pass.seed, pass.step, dropout_site, dropout}, dropout_rows(batch),
                        layer_norm_parameters<T>(parameters, norm_, shape_.layer_norm_epsilon), saved.norm,
                        saved.output);
}

template <class T>
void BertEmbeddings<T>::backward(const nn::Pass& pass, const Batch& batch, float dropout, const Activations& saved,
                                 const Matrix<T>& doutput, const Vector<float>& column_sums) const {
  namespace names = nn::names;
  const auto& parameters = pass.parameters;
  layer_norm_dropout_backward<T>(pass.space, {pass.seed, pass.step, dropout_site, dropout}, dropout_rows(batch),
                                 doutput, layer_norm_parameters<T>(parameters, norm_, shape_.layer_norm_epsilon),
                                 saved.norm, doutput, parameters.gradient(norm_.weight),
                                 parameters.gradient(norm_.bias), column_sums);
  const auto add = [&](const IndexGroups& groups, std::size_t table, std::int32_t padding) {
    if (!parameters.trains(table)) return;
    embedding_gradient<T>(pass.space, groups, doutput, parameters.gradient_matrix(table), padding);
  };
  add(batch.groups(names::tokens), words_, shape_.padding_token);
  add(batch.position_groups(), positions_, no_padding);
  add(batch.groups(names::segments), segments_, no_padding);
}

/// Unit 0 is that of the embeddings, and unit i + 1 that of layer i.
template <class T>
struct BertUnits {
  BertEmbeddings<T> embeddings;
  std::vector<BertLayer<T>> layers;
};

template <class T>
class BertPass final : public nn::BodyPass<T> {
 public:
  BertPass(const BertUnits<T>& units, const BertShape& shape) : units_(units), shape_(shape) {}

  /// Layers keep what `recompute` asks for. Those below the first trained unit keep nothing: they use the arrays of the
  /// first trained layer, and leave their result in place of their input.
  void take_training(Arena& arena, std::size_t rows, nn::Recompute recompute, std::size_t first_trained) {
    embeddings_.output = arena.matrix<T>(rows, shape_.hidden);
    const std::size_t below = std::max<std::size_t>(first_trained, 1) - 1;
    for (std::size_t layer = below; layer < shape_.layers; ++layer) {
      const BertLayerActivations<T>* const before = layer == below ? nullptr : &layers_.back();
      layers_.push_back(BertLayer<T>::take_activations(arena, shape_, rows, recompute, before));
    }
    BertLayerActivations<T> shared = layers_.front();
    shared.output = embeddings_.output;
    layers_.insert(layers_.begin(), below, shared);
    embeddings_.norm = first_trained > 0 ? shared.attention_norm : take_layer_norm_saved<T>(arena, rows, shape_.hidden);
    workspace_ = BertLayer<T>::take_workspace(arena, shape_, rows);
    scratch_ = workspace_.forward();
    this->output_ = {result(shape_.layers), arena.matrix<T>(rows, shape_.hidden), workspace_.column_sums};
  }
  void set_dropout() { rates_ = {shape_.hidden_dropout, shape_.attention_dropout}; }
  /// Nothing is kept: all layers reuse the memory of one, in place. A layer reads its input before it writes its
  /// output.
  void take_prediction(Arena& arena, std::size_t rows) {
    embeddings_ = BertEmbeddings<T>::take_activations(arena, shape_, rows);
    layers_.assign(shape_.layers, BertLayer<T>::take_activations(arena, shape_, rows));
    for (BertLayerActivations<T>& layer : layers_) layer.output = embeddings_.output;
    scratch_ = BertLayer<T>::take_scratch(arena, shape_, rows);
    this->output_ = {embeddings_.output, {}, {}};
  }

  void forward(const nn::Pass& pass, const Batch& batch, std::size_t unit) override {
    if (unit == 0) return units_.embeddings.forward(pass, batch, rates_.hidden, embeddings_);
    units_.layers[unit - 1].forward(pass, batch, rates_, result(unit - 1), layers_[unit - 1], scratch_);
  }
  void restore(const nn::Pass& pass, const Batch& batch, std::size_t unit) override {
    if (unit == 0) return;
    units_.layers[unit - 1].restore(pass, batch, rates_, result(unit - 1), layers_[unit - 1], scratch_);
  }
  void backward(const nn::Pass& pass, const Batch& batch, std::size_t unit) override {
    const Matrix<T>& gradient = this->output_.dx;
    if (unit == 0) {
      return units_.embeddings.backward(pass, batch, rates_.hidden, embeddings_, gradient, workspace_.column_sums);
    }
    units_.layers[unit - 1].backward(pass, batch, rates_, result(unit - 1), layers_[unit - 1], gradient, workspace_,
                                     gradient);
  }

 private:
  const Matrix<T>& result(std::size_t unit) const { return unit == 0 ? embeddings_.output : layers_[unit - 1].output; }

  const BertUnits<T>& units_;
  const BertShape& shape_;
  DropoutRates rates_;  ///< zero in prediction
  typename BertEmbeddings<T>::Activations embeddings_;
  std::vector<BertLayerActivations<T>> layers_;
  BertLayerScratch<T> scratch_;
  BertLayerWorkspace<T> workspace_;
};

template <class T>
class BertBody final : public nn::Body<T> {
 public:
  using typename nn::Body<T>::Purpose;

  explicit BertBody(const BertShape& shape) : shape_(shape) {
    require(shape.heads > 0 && shape.hidden % shape.heads == 0,
            fmt::format("BERT: hidden size {} is not a multiple of {} heads", shape.hidden, shape.heads));
  }

  std::size_t width() const override { return shape_.hidden; }
  void add_units(ParameterTable::Builder& builder) const override {
    BertEmbeddings<T>::add_rows(builder, shape_);
    for (std::size_t layer = 0; layer < shape_.layers; ++layer) BertLayer<T>::add_rows(builder, shape_, layer);
  }
  void find_tensors(const ParameterTable& table) override {
    units_.emplace(BertUnits<T>{BertEmbeddings<T>(table, shape_), {}});
    for (std::size_t layer = 0; layer < shape_.layers; ++layer) units_->layers.emplace_back(table, shape_, layer);
  }

  std::unique_ptr<nn::BodyPass<T>> begin(Arena& arena, const BatchShape& batch, Purpose purpose,
                                         nn::Recompute recompute, std::size_t first_trained) const override {
    auto pass = std::make_unique<BertPass<T>>(*units_, shape_);
    const bool trains = purpose == Purpose::training;
    if (trains) pass->set_dropout();
    if (trains && first_trained <= shape_.layers) {
      pass->take_training(arena, batch.rows, recompute, first_trained);
    } else {
      pass->take_prediction(arena, batch.rows);
    }
    return pass;
  }

  std::vector<GemmProduct> products(const BatchShape& batch, Purpose purpose) const override {
    return BertLayer<T>::products(shape_, batch.rows, purpose);
  }
  nn::UnitFlops training_flops(std::size_t unit, const BatchShape& batch, nn::Recompute recompute) const override {
    if (unit == 0) return {};  // lookups need no products
    return BertLayer<T>::training_flops(shape_, batch, recompute);
  }
  std::size_t scratch_bytes(const BatchShape& batch, Purpose purpose, const TeamProcessor& processor) const override {
    return BertLayer<T>::scratch_bytes(shape_, batch, purpose, processor);
  }
  void prepare(const ExecutionSpace& space, const BatchShapes& batches, Purpose purpose) const override {
    prepare_attention<T>(space, attention_shape(shape_), batches, purpose == Purpose::training);
  }

 private:
  BertShape shape_;
  std::optional<BertUnits<T>> units_;
};

}  // namespace

template <class T>
std::unique_ptr<nn::Body<T>> make_bert_body(const BertShape& shape) {
  return std::make_unique<BertBody<T>>(shape);
}

template std::unique_ptr<nn::Body<float>> make_bert_body<float>(const BertShape&);
template std::unique_ptr<nn::Body<bfloat16>> make_bert_body<bfloat16>(const BertShape&);
template std::unique_ptr<nn::Body<half>> make_bert_body<half>(const BertShape&);

}  // namespace mylos::families
