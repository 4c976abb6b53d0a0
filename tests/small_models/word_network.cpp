#include "tests/small_models/word_network.hpp"

#include "core/kernels/embedding.hpp"
#include "nn/heads/vocabulary_head.hpp"
#include "nn/layers/linear.hpp"
#include "nn/network.hpp"
#include "tests/small_models/text_task.hpp"

namespace mylos::small_models {
namespace {

constexpr const char* tokens = "tokens";
constexpr std::size_t hidden = 32;

/// Unit 0 has the embeddings, and the head's unit the matrix.
struct WordUnits {
  std::size_t embeddings = 0;
  nn::Linear matrix = {};
};

class WordPass final : public nn::BodyPass<float> {
 public:
  WordPass(const WordUnits& units, Arena& arena, std::size_t rows, bool trains)
      : units_(units), embedded_(arena.matrix<float>(rows, hidden)) {
    output_.x = arena.matrix<float>(rows, hidden);
    if (!trains) return;
    output_.dx = arena.matrix<float>(rows, hidden);
    dembedded_ = arena.matrix<float>(rows, hidden);
  }

  void forward(const nn::Pass& pass, const Batch& batch, std::size_t) override {
    embedding_lookup<float>(pass.space, batch.integers(tokens), pass.parameters.matrix<float>(units_.embeddings), false,
                            embedded_, batch.distinct(tokens));
  }
  void finish(const nn::Pass& pass, const Batch&) override {
    nn::linear_without_bias<float>(pass, units_.matrix, embedded_, output_.x);
  }
  void finish_backward(const nn::Pass& pass, const Batch&) override {
    nn::linear_weight_gradient<float>(pass, units_.matrix, embedded_, output_.dx);
    nn::linear_input_gradient<float>(pass, units_.matrix, output_.dx, 0.0f, dembedded_);
  }
  void restore(const nn::Pass&, const Batch&, std::size_t) override {}
  void backward(const nn::Pass& pass, const Batch& batch, std::size_t) override {
    embedding_gradient<float>(pass.space, batch.groups(tokens), dembedded_,
                              pass.parameters.gradient_matrix(units_.embeddings));
  }

 private:
  const WordUnits& units_;
  Matrix<float> embedded_, dembedded_;  ///< (T, H)
};

class WordBody final : public nn::Body<float> {
 public:
  std::size_t width() const override { return hidden; }
  void add_units(ParameterTable::Builder& builder) const override {
    builder.unit("embeddings").tensor("words.weight", {vocabulary, hidden}, {Initializer::Kind::normal, 0.3f});
  }
  void add_final_tensors(ParameterTable::Builder& builder) const override {
    builder.tensor("matrix.weight", {hidden, hidden}, {Initializer::Kind::normal, 0.1f});
  }
  void find_tensors(const ParameterTable& table) override {
    units_.embeddings = table.find("words.weight");
    units_.matrix.weight = table.find("matrix.weight");
  }

  bool can_recompute(nn::Recompute recompute) const override { return recompute == nn::Recompute::none; }
  std::unique_ptr<nn::BodyPass<float>> begin(Arena& arena, const BatchShape& batch, Purpose purpose, nn::Recompute,
                                             std::size_t) const override {
    return std::make_unique<WordPass>(units_, arena, batch.rows, purpose == Purpose::training);
  }

  std::vector<GemmProduct> products(const BatchShape& batch, Purpose purpose) const override {
    return nn::linear_products({.name = "matrix", .in = hidden, .out = hidden}, batch.rows, purpose);
  }
  nn::UnitFlops training_flops(std::size_t, const BatchShape&, nn::Recompute) const override { return {}; }

 private:
  WordUnits units_;
};

}  // namespace

std::unique_ptr<nn::Model> make_word_network() {
  return nn::make_network<float>(
      std::make_unique<WordBody>(),
      nn::make_vocabulary_head<float>({.weight = "words.weight", .vocabulary = vocabulary, .lender = "embeddings"}));
}

}  // namespace mylos::small_models
