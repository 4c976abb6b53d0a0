#include "tests/small_models/causal_decoder.hpp"

#include "core/kernels/embedding.hpp"
#include "nn/vocabulary_loss.hpp"
#include "tests/small_models/decoder_kernels.hpp"

#include <vector>

namespace mylos::small_models {
namespace {

using nn::Pass;
using nn::Recompute;
using Purpose = ParameterStore::Purpose;

ParameterTable make_table(const DecoderShape& shape) {
  const Initializer normal{Initializer::Kind::normal, shape.initializer_range};
  ParameterTable::Builder builder;
  builder.unit("embeddings");
  builder.tensor("tokens.weight", {shape.vocabulary, shape.hidden}, normal);
  builder.tensor("positions.weight", {shape.positions, shape.hidden}, normal);
  for (std::size_t layer = 0; layer < shape.layers; ++layer) DecoderLayer::add_rows(builder, shape, layer);
  builder.unit("head").borrow("embeddings");
  builder.tensor("norm.weight", {shape.hidden}, {Initializer::Kind::ones}, {.decay = false});
  return builder.build();
}

struct Activations {
  Matrix<float> embedded;  ///< (T, H)
  std::vector<DecoderLayerActivations> layers;
  Vector<float> inverse;  ///< (T)
  Matrix<float> normal;   ///< (T, H)
  nn::VocabularyWorkspace<float> vocabulary;
};

struct Workspace {
  Matrix<float> dnormal, dx;  ///< (T, H)
  DecoderLayerWorkspace layer;
};

class CausalDecoder final : public nn::Model {
 public:
  CausalDecoder(const DecoderShape& shape, std::size_t chunk)
      : shape_(shape),
        table_(make_table(shape)),
        tokens_(table_.find("tokens.weight")),
        positions_(table_.find("positions.weight")),
        norm_(table_.find("norm.weight")),
        head_(nn::find_vocabulary_head(table_, "tokens.weight")) {
    for (std::size_t layer = 0; layer < shape.layers; ++layer) layers_.emplace_back(table_, shape, layer);
    if (chunk > 0) head_.chunk = chunk;
  }

  const ParameterTable& table() const override { return table_; }

  bool can_recompute(Recompute recompute) const override { return recompute != Recompute::attention; }
  void plan(Arena& arena, const BatchShape& shape, Purpose purpose, Recompute recompute) const override {
    take_activations(arena, shape.rows, purpose, recompute);
    if (purpose == Purpose::training) take_workspace(arena, shape.rows);
  }

  void train(const Pass& pass, const Batch& batch, float scale, const Vector<float>& losses) const override;
  Matrix<float> predict(const Pass& pass, const Batch& batch, const Vector<float>& losses) const override;

  /// Based on the weights of each unit, once forward and twice backward. With Recompute::layer all layers but the last
  /// run forward again.
  std::vector<double> unit_flops(const BatchShape& shape, Recompute recompute) const override {
    std::vector<double> flops;
    for (const ParameterUnit& unit : table_.units()) {
      flops.push_back(6.0 * static_cast<double>(shape.rows) * static_cast<double>(unit.size));
    }
    for (std::size_t i = 0; recompute == Recompute::layer && i + 1 < layers_.size(); ++i) {
      flops[layers_[i].unit()] *= 4.0 / 3.0;
    }
    return flops;
  }

 private:
  Activations take_activations(Arena& arena, std::size_t rows, Purpose purpose, Recompute recompute) const {
    Activations taken{arena.matrix<float>(rows, shape_.hidden),
                      {},
                      arena.vector<float>(rows),
                      arena.matrix<float>(rows, shape_.hidden),
                      nn::take_vocabulary_workspace<float>(arena, head_, rows, purpose)};
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      const bool shares = recompute == Recompute::layer && layer > 0;
      taken.layers.push_back(
          DecoderLayer::take_activations(arena, shape_, rows, shares ? &taken.layers.back() : nullptr));
    }
    return taken;
  }
  Workspace take_workspace(Arena& arena, std::size_t rows) const {
    return {arena.matrix<float>(rows, shape_.hidden), arena.matrix<float>(rows, shape_.hidden),
            DecoderLayer::take_workspace(arena, shape_, rows)};
  }
  /// Computes the activations up to the head's input. Acquires the head's unit.
  void forward(const Pass& pass, const Batch& batch, const Activations& saved) const;
  ConstMatrix<float> input_of(std::size_t layer, const Activations& saved) const {
    return layer == 0 ? saved.embedded : saved.layers[layer - 1].output;
  }
  std::size_t embeddings_unit() const { return table_.tensor(tokens_).unit; }
  std::size_t head_unit() const { return table_.tensor(norm_).unit; }

  DecoderShape shape_;
  ParameterTable table_;
  std::size_t tokens_, positions_, norm_;
  nn::VocabularyHead head_;
  std::vector<DecoderLayer> layers_;
};

void CausalDecoder::forward(const Pass& pass, const Batch& batch, const Activations& saved) const {
  const ParameterStore& parameters = pass.parameters;
  pass.hooks.acquire(embeddings_unit());
  embedding_lookup<float>(pass.space, batch.integers(words::tokens), parameters.matrix<float>(tokens_), false,
                          saved.embedded, batch.distinct(words::tokens));
  embedding_lookup<float>(pass.space, batch.positions(), parameters.matrix<float>(positions_), true, saved.embedded,
                          batch.shape().longest);
  pass.hooks.release(embeddings_unit());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    pass.hooks.acquire(layers_[layer].unit());
    layers_[layer].forward(pass, batch, input_of(layer, saved), saved.layers[layer]);
    pass.hooks.release(layers_[layer].unit());
  }
  pass.hooks.acquire(head_unit());
  rms_norm(pass.space, parameters.values<float>(norm_), shape_.epsilon, input_of(layers_.size(), saved), saved.inverse,
           saved.normal);
}

void CausalDecoder::train(const Pass& pass, const Batch& batch, float scale, const Vector<float>& losses) const {
  pass.arena.rewind(0);
  const ParameterStore& parameters = pass.parameters;
  const Activations saved = take_activations(pass.arena, batch.shape().rows, Purpose::training, pass.recompute);
  const Workspace work = take_workspace(pass.arena, batch.shape().rows);
  forward(pass, batch, saved);
  nn::vocabulary_loss<float>(pass, head_, batch, saved.normal, batch.integers(words::labels), scale, saved.vocabulary,
                             losses, work.dnormal);
  Kokkos::deep_copy(pass.space, work.dx, 0.0f);
  rms_norm_backward(pass.space, parameters.values<float>(norm_), input_of(layers_.size(), saved), saved.inverse,
                    work.dnormal, work.dx, parameters.gradient(norm_), work.layer.column_sums);
  pass.hooks.release(head_unit());
  pass.hooks.gradients_ready(head_unit());
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    pass.hooks.acquire(layers_[layer].unit());
    if (pass.recompute == Recompute::layer && layer + 1 < layers_.size()) {
      layers_[layer].forward(pass, batch, input_of(layer, saved), saved.layers[layer]);
    }
    layers_[layer].backward(pass, batch, input_of(layer, saved), saved.layers[layer], work.layer, work.dx);
    pass.hooks.release(layers_[layer].unit());
    pass.hooks.gradients_ready(layers_[layer].unit());
  }
  pass.hooks.acquire(embeddings_unit());
  embedding_gradient<float>(pass.space, batch.groups(words::tokens), work.dx, parameters.gradient_matrix(tokens_));
  embedding_gradient<float>(pass.space, batch.position_groups(), work.dx, parameters.gradient_matrix(positions_));
  pass.hooks.release(embeddings_unit());
  pass.hooks.gradients_ready(embeddings_unit());
}

Matrix<float> CausalDecoder::predict(const Pass& pass, const Batch& batch, const Vector<float>& losses) const {
  pass.arena.rewind(0);
  const Activations saved = take_activations(pass.arena, batch.shape().rows, Purpose::inference, Recompute::none);
  const Matrix<float> likeliest(saved.inverse.data(), batch.shape().rows, 1);  // unused once x is normalised
  forward(pass, batch, saved);
  nn::for_each_logits_chunk<float>(
      pass, head_, saved.normal, saved.vocabulary, [&](std::size_t first, const ConstMatrix<float>& logits) {
        largest_column(pass.space, logits, Matrix<float>(likeliest.data() + first, logits.extent(0), 1));
        if (losses.size() > 0) {
          nn::chunk_losses<float>(pass, batch.integers(words::labels), first, logits, saved.vocabulary);
        }
      });
  pass.hooks.release(head_unit());
  if (losses.size() > 0) {
    nn::sum_sample_losses(pass.space, batch.sample_starts(), saved.vocabulary.row_losses, losses);
  }
  return likeliest;
}

}  // namespace

std::unique_ptr<nn::Model> make_causal_decoder(const DecoderShape& shape, std::size_t chunk) {
  return std::make_unique<CausalDecoder>(shape, chunk);
}

}  // namespace mylos::small_models
