#include "nn/gpt/gpt_sizes.hpp"

#include "core/base/error.hpp"
#include "core/element_type.hpp"
#include "core/kernels/attention.hpp"
#include "core/kernels/layer_norm.hpp"
#include "nn/layers/linear.hpp"
#include "nn/vocabulary_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace mylos::nn {
namespace {

using Purpose = ParameterStore::Purpose;

constexpr const char* token_embeddings = "embeddings.weight";

void add_norm_row(ParameterTable::Builder& builder, const std::string& name, std::size_t size) {
  builder.tensor(name + ".weight", {size}, {Initializer::Kind::ones}, {.decay = false});
}

ParameterTable make_gpt_table(const GptShape& shape) {
  require(shape.vocabulary > 0 && shape.hidden > 0 && shape.layers > 0 && shape.feed_forward > 0 && shape.heads > 0 &&
              shape.hidden % shape.heads == 0,
          fmt::format("GPT: hidden {} is not a multiple of {} heads, or a size is 0", shape.hidden, shape.heads));
  const Initializer normal{Initializer::Kind::normal, 0.02f};
  const std::size_t hidden = shape.hidden;
  ParameterTable::Builder builder;
  builder.unit("embeddings").tensor(token_embeddings, {shape.vocabulary, hidden}, normal);
  for (std::size_t layer = 0; layer < shape.layers; ++layer) {
    const std::string name = fmt::format("layer.{}", layer);
    builder.unit(name);
    builder.tensor(name + ".qkv.weight", {3 * hidden, hidden}, normal);
    builder.tensor(name + ".attention_output.weight", {hidden, hidden}, normal);
    builder.tensor(name + ".up.weight", {shape.feed_forward, hidden}, normal);
    builder.tensor(name + ".down.weight", {hidden, shape.feed_forward}, normal);
    add_norm_row(builder, name + ".attention_norm", hidden);
    add_norm_row(builder, name + ".mlp_norm", hidden);
  }
  builder.unit("head").borrow("embeddings");
  add_norm_row(builder, "norm", hidden);
  return builder.build();
}

template <class T>
class GptSizes final : public Model {
 public:
  explicit GptSizes(const GptShape& shape)
      : shape_(shape), table_(make_gpt_table(shape)), head_(find_vocabulary_head(table_, token_embeddings)) {}

  const ParameterTable& table() const override { return table_; }
  bool can_recompute(Recompute) const override { return true; }

  void plan(Arena& arena, const BatchShape& batch, Purpose purpose, Recompute recompute) const override {
    const std::size_t rows = batch.rows;
    const bool trains = purpose == Purpose::training;
    for (std::size_t layer = 0; layer < (trains ? shape_.layers : 1); ++layer) {
      take_layer(arena, rows, trains ? recompute : Recompute::none, layer == 0);
    }
    take_norm(arena, rows);  // for the head
    take_vocabulary_workspace<T>(arena, head_, rows, purpose);
    arena.matrix<T>(rows, shape_.hidden);                                     // outputs of norms, then their gradients
    arena.matrix<T>(rows, std::max(shape_.feed_forward, 3 * shape_.hidden));  // the activation; later the gradient of
                                                                              // qkv
    if (!trains) return;
    arena.matrix<T>(rows, shape_.hidden);  // the gradient passed down through the layers
    arena.matrix<float>(shape_.heads, rows);
    arena.vector<float>(column_sum_workspace(rows, shape_.hidden));
  }

  std::size_t scratch_bytes(const BatchShape& batch, Purpose purpose, const TeamProcessor& processor) const override {
    const std::size_t forward = attention_forward_scratch<T>(attention(), batch.samples, batch.longest, processor);
    if (purpose == Purpose::inference) return forward;
    return std::max(forward, attention_backward_scratch<T>(attention(), batch.samples, batch.longest, processor));
  }

  std::vector<GemmProduct> products(const BatchShape& batch, Purpose purpose) const override {
    std::vector<GemmProduct> all;
    const std::size_t hidden = shape_.hidden, feed_forward = shape_.feed_forward;
    for (LinearProducts linear : {LinearProducts{.name = "qkv", .in = hidden, .out = 3 * hidden},
                                  LinearProducts{.name = "attention-output", .in = hidden, .out = hidden},
                                  LinearProducts{.name = "up", .in = hidden, .out = feed_forward},
                                  LinearProducts{.name = "down", .in = feed_forward, .out = hidden}}) {
      linear.precision = precision_of<T>;
      linear.count = shape_.layers;
      for (const GemmProduct& product : linear_products(linear, batch.rows, purpose)) all.push_back(product);
    }
    return all;
  }

  std::vector<double> unit_flops(const BatchShape& batch, Recompute recompute) const override {
    const auto hidden = static_cast<double>(shape_.hidden), feed_forward = static_cast<double>(shape_.feed_forward);
    const auto rows = static_cast<double>(batch.rows);
    const double length = rows / static_cast<double>(batch.samples);
    const double down = hidden * feed_forward, qkv = 3.0 * hidden * hidden;
    // Causal attention: on average a token attends to half of the tokens and itself, in two products per head.
    const double forward = qkv + hidden * hidden + 2.0 * down + hidden * (length + 1.0);
    // The product with `down` is skipped: it gives only the next layer's input, which is kept.
    const double again = recompute == Recompute::layer ? forward - down : recompute == Recompute::attention ? qkv : 0.0;
    std::vector<double> flops(table_.units().size(), 2.0 * rows * (3.0 * forward + again));
    flops.front() = 0.0;                                // embedding lookups need no products
    flops[shape_.layers] = 2.0 * rows * 3.0 * forward;  // the last layer is not recomputed
    flops.back() = 6.0 * rows * static_cast<double>(shape_.vocabulary) * hidden;
    return flops;
  }

  void train(const Pass&, const Batch&, float, const Vector<float>&) const override { refuse(); }
  Matrix<float> predict(const Pass&, const Batch&, const Vector<float>&) const override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw std::logic_error("GptSizes: a model for plans computes nothing"); }

  AttentionShape attention() const {
    const std::size_t head_size = shape_.hidden / shape_.heads;
    const float scale = 1.0f / std::sqrt(static_cast<float>(head_size));
    return {shape_.heads, shape_.heads, head_size, scale, true, AttentionKernel::portable};
  }

  void take_norm(Arena& arena, std::size_t rows) const {
    arena.matrix<T>(rows, shape_.hidden);
    arena.vector<float>(rows);
    arena.vector<float>(rows);
  }

  /// Allocates the activations that a layer keeps: its input, queries, keys and values, the context, the sum after
  /// attention, and the input of GELU. With Recompute::layer each layer keeps only its input, and all layers share the
  /// memory of the rest.
  void take_layer(Arena& arena, std::size_t rows, Recompute recompute, bool is_first) const {
    arena.matrix<T>(rows, shape_.hidden);
    if (is_first || recompute == Recompute::none) arena.matrix<T>(rows, 3 * shape_.hidden);
    if (!is_first && recompute == Recompute::layer) return;
    arena.vector<float>(2 * rows);
    arena.matrix<T>(rows, shape_.hidden);
    arena.matrix<float>(shape_.heads, rows);
    take_norm(arena, rows);
    arena.matrix<T>(rows, shape_.feed_forward);
  }

  GptShape shape_;
  ParameterTable table_;
  VocabularyHead head_;
};

}  // namespace

std::unique_ptr<Model> make_gpt_sizes(const GptShape& shape, Precision precision) {
  return with_type(precision,
                   [&]<class T>(T) -> std::unique_ptr<Model> { return std::make_unique<GptSizes<T>>(shape); });
}

}  // namespace mylos::nn
