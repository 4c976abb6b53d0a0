#include "tests/small_models/causal_decoder.hpp"

#include "core/kernels/embedding.hpp"
#include "nn/heads/vocabulary_head.hpp"
#include "nn/network.hpp"
#include "tests/small_models/decoder_kernels.hpp"

#include <vector>

namespace mylos::small_models {
namespace {

using nn::Pass;
using nn::Recompute;

/// Unit 0 has the embeddings, unit i + 1 layer i, and the head's unit the final norm.
struct DecoderUnits {
  DecoderShape shape;
  std::size_t tokens = 0, positions = 0, norm = 0;
  std::vector<DecoderLayer> layers = {};
};

class DecoderPass final : public nn::BodyPass<float> {
 public:
  DecoderPass(const DecoderUnits& units, Arena& arena, std::size_t rows, bool trains, Recompute recompute)
      : units_(units), embedded_(arena.matrix<float>(rows, units.shape.hidden)), inverse_(arena.vector<float>(rows)) {
    const DecoderShape& shape = units.shape;
    for (std::size_t layer = 0; layer < shape.layers; ++layer) {
      const bool shares = recompute == Recompute::layer && layer > 0;
      layers_.push_back(DecoderLayer::take_activations(arena, shape, rows, shares ? &layers_.back() : nullptr));
    }
    output_.x = arena.matrix<float>(rows, shape.hidden);
    if (!trains) return;
    output_.dx = arena.matrix<float>(rows, shape.hidden);
    dx_ = arena.matrix<float>(rows, shape.hidden);
    work_ = DecoderLayer::take_workspace(arena, shape, rows);
  }

  void forward(const Pass& pass, const Batch& batch, std::size_t unit) override {
    if (unit > 0) return units_.layers[unit - 1].forward(pass, batch, result(unit - 1), layers_[unit - 1]);
    const ParameterStore& parameters = pass.parameters;
    embedding_lookup<float>(pass.space, batch.integers(words::tokens), parameters.matrix<float>(units_.tokens), false,
                            embedded_, batch.distinct(words::tokens));
    embedding_lookup<float>(pass.space, batch.positions(), parameters.matrix<float>(units_.positions), true, embedded_,
                            batch.shape().longest);
  }
  void finish(const Pass& pass, const Batch&) override {
    rms_norm(pass.space, pass.parameters.values<float>(units_.norm), units_.shape.epsilon, result(layers_.size()),
             inverse_, output_.x);
  }
  void finish_backward(const Pass& pass, const Batch&) override {
    Kokkos::deep_copy(pass.space, dx_, 0.0f);
    rms_norm_backward(pass.space, pass.parameters.values<float>(units_.norm), result(layers_.size()), inverse_,
                      output_.dx, dx_, pass.parameters.gradient(units_.norm), work_.column_sums);
  }
  void restore(const Pass& pass, const Batch& batch, std::size_t unit) override {
    if (unit > 0) forward(pass, batch, unit);
  }
  void backward(const Pass& pass, const Batch& batch, std::size_t unit) override {
    if (unit > 0) {
      return units_.layers[unit - 1].backward(pass, batch, result(unit - 1), layers_[unit - 1], work_, dx_);
    }
    const ParameterStore& parameters = pass.parameters;
    embedding_gradient<float>(pass.space, batch.groups(words::tokens), dx_, parameters.gradient_matrix(units_.tokens));
    embedding_gradient<float>(pass.space, batch.position_groups(), dx_, parameters.gradient_matrix(units_.positions));
  }

 private:
  ConstMatrix<float> result(std::size_t unit) const { return unit == 0 ? embedded_ : layers_[unit - 1].output; }

  const DecoderUnits& units_;
  Matrix<float> embedded_;  ///< (T, H)
  Vector<float> inverse_;   ///< (T)
  std::vector<DecoderLayerActivations> layers_;
  Matrix<float> dx_;  ///< (T, H)
  DecoderLayerWorkspace work_;
};

class CausalDecoder final : public nn::Body<float> {
 public:
  explicit CausalDecoder(const DecoderShape& shape) : units_{shape} {}

  std::size_t width() const override { return units_.shape.hidden; }
  void add_units(ParameterTable::Builder& builder) const override {
    const DecoderShape& shape = units_.shape;
    const Initializer normal{Initializer::Kind::normal, shape.initializer_range};
    builder.unit("embeddings").tensor("tokens.weight", {shape.vocabulary, shape.hidden}, normal);
    builder.tensor("positions.weight", {shape.positions, shape.hidden}, normal);
    for (std::size_t layer = 0; layer < shape.layers; ++layer) DecoderLayer::add_rows(builder, shape, layer);
  }
  void add_final_tensors(ParameterTable::Builder& builder) const override {
    builder.tensor("norm.weight", {units_.shape.hidden}, {Initializer::Kind::ones}, {.decay = false});
  }
  void find_tensors(const ParameterTable& table) override {
    units_.tokens = table.find("tokens.weight");
    units_.positions = table.find("positions.weight");
    units_.norm = table.find("norm.weight");
    for (std::size_t layer = 0; layer < units_.shape.layers; ++layer) {
      units_.layers.emplace_back(table, units_.shape, layer);
      layer_size_ = table.units()[layer + 1].size;
    }
  }

  bool can_recompute(Recompute recompute) const override { return recompute != Recompute::attention; }
  std::unique_ptr<nn::BodyPass<float>> begin(Arena& arena, const BatchShape& batch, Purpose purpose,
                                             Recompute recompute) const override {
    return std::make_unique<DecoderPass>(units_, arena, batch.rows, purpose == Purpose::training, recompute);
  }

  std::vector<GemmProduct> products(const BatchShape&, Purpose) const override { return {}; }
  /// Based on the weights of a layer, once forward and twice backward.
  nn::UnitFlops training_flops(std::size_t unit, const BatchShape& batch, Recompute recompute) const override {
    if (unit == 0) return {};
    const double forward = 2.0 * static_cast<double>(batch.rows) * static_cast<double>(layer_size_);
    return {forward, forward, forward, recompute == Recompute::layer ? forward : 0.0};
  }

 private:
  DecoderUnits units_;
  std::size_t layer_size_ = 0;
};

}  // namespace

std::unique_ptr<nn::Model> make_causal_decoder(const DecoderShape& shape, std::size_t chunk) {
  return nn::make_network<float>(
      std::make_unique<CausalDecoder>(shape),
      nn::make_vocabulary_head<float>(
          {.weight = "tokens.weight", .vocabulary = shape.vocabulary, .lender = "embeddings", .chunk = chunk}));
}

}  // namespace mylos::small_models
