#include "app/bench/kernel_work.hpp"

#include "core/kernels/column_sums.hpp"

#include <functional>
#include <map>
#include <string>

namespace mylos::app {
namespace {

// Operations of exp_approximate and exp2_approximate, and of what is computed from the latter.
constexpr double exponential = 21.0, power_of_two = 16.0;
constexpr double gelu_flops = power_of_two + 18.0, gelu_gradient_flops = power_of_two + 25.0;

constexpr double float_bytes = sizeof(float);

/// The sizes that formulas are made of.
struct Sizes {
  double layers, hidden, heads, feed_forward;  ///< L H A F
  StepShape step;
  double element;  ///< bytes of an activation

  Sizes(const data::BertConfig& model, const StepShape& shape)
      : layers(static_cast<double>(model.num_hidden_layers)),
        hidden(static_cast<double>(model.hidden_size)),
        heads(static_cast<double>(model.num_attention_heads)),
        feed_forward(static_cast<double>(model.intermediate_size)),
        step(shape),
        element(static_cast<double>(bytes_of(shape.precision))) {}

  /// Elements of a (T, H) array.
  double rows() const { return step.tokens * hidden; }
  /// Rows of partial column sums.
  double blocks() const { return step.tokens / static_cast<double>(column_sum_rows); }
  /// Elements of the arrays whose column sums are bias gradients: (T, F) and (T, 3H) of each layer, (T, 2) of the head.
  double biased() const { return step.tokens * (layers * (feed_forward + 3.0 * hidden) + 2.0); }
  /// Elements of attention's scores in all heads of a layer.
  double scores() const { return heads * step.squared_lengths; }
};

// Formulas of kernels whose calls are alike: one call over the tokens of all micro-batches. The terms are reads, then
// writes; LayerNorm's statistics and attention's sums are two or one floats a row.

Work layer_norm(const Sizes& s) {
  return {s.rows() * 11.0, s.rows() * (2.0 + 2.0) * s.element + s.step.tokens * 2.0 * float_bytes};
}

Work layer_norm_again(const Sizes& s) {
  return {s.rows() * 4.0, s.rows() * (1.0 + 1.0) * s.element + s.step.tokens * 2.0 * float_bytes};
}

Work layer_norm_backward(const Sizes& s) {
  const double sums = 3.0 * s.blocks() * s.hidden * float_bytes;
  return {s.rows() * 22.0, s.rows() * (2.0 + 2.0) * s.element + s.step.tokens * 2.0 * float_bytes + sums};
}

/// Of the feed-forward's activation, where a backward pass makes it again.
Work gelu_again(const Sizes& s) {
  const double elements = s.step.tokens * s.feed_forward;
  return {elements * gelu_flops, elements * (1.0 + 1.0) * s.element};
}

Work embedding_norm(const Sizes& s) {
  return {s.rows() * 9.0, s.rows() * 2.0 * s.element + s.step.tokens * 2.0 * float_bytes};
}

Work embedding_norm_backward(const Sizes& s) {
  const double sums = 2.0 * s.blocks() * s.hidden * float_bytes;
  return {s.rows() * 20.0, s.rows() * 3.0 * s.element + s.step.tokens * 2.0 * float_bytes + sums};
}

Work attention_forward(const Sizes& s) {
  return {4.0 * s.hidden * s.step.squared_lengths + s.scores() * (power_of_two + 4.0),
          (3.0 + 1.0) * s.rows() * s.element + s.heads * s.step.tokens * float_bytes};
}

Work attention_backward(const Sizes& s) {
  return {10.0 * s.hidden * s.step.squared_lengths + s.scores() * (power_of_two + 5.0),
          (4.0 + 3.0) * s.rows() * s.element + 2.0 * s.heads * s.step.tokens * float_bytes};
}

Work attention_row_sums(const Sizes& s) {
  return {2.0 * s.rows(), 2.0 * s.rows() * s.element + s.heads * s.step.tokens * float_bytes};
}

/// On tensor cores each of two passes makes the scores and their gradients: 3 and 4 products.
Work tensor_core_backward_queries(const Sizes& s) {
  return {6.0 * s.hidden * s.step.squared_lengths + s.scores() * (power_of_two + 5.0),
          (5.0 + 1.0) * s.rows() * s.element + 2.0 * s.heads * s.step.tokens * float_bytes};
}

Work tensor_core_backward_keys(const Sizes& s) {
  return {8.0 * s.hidden * s.step.squared_lengths + s.scores() * (power_of_two + 5.0),
          (4.0 + 2.0) * s.rows() * s.element + 2.0 * s.heads * s.step.tokens * float_bytes};
}

/// Two softmaxes over the rows of each sequence.
Work span_loss(const Sizes& s) {
  const double logits = 2.0 * s.step.tokens;
  return {logits * (2.0 * exponential + 6.0), logits * (float_bytes + s.element)};
}

// Formulas of kernels whose calls are not alike: all calls of a step.

Work column_sums(const Sizes& s) {
  return {s.biased(), s.biased() * (s.element + float_bytes / static_cast<double>(column_sum_rows))};
}

/// Partial sums of LayerNorm's three column sums, the embeddings' two, and those of column_sums.
Work partial_sums(const Sizes& s) {
  const double columns = 2.0 * s.layers * 3.0 * s.hidden + 2.0 * s.hidden;
  const double elements = s.blocks() * columns + s.biased() / static_cast<double>(column_sum_rows);
  return {elements, elements * float_bytes};
}

/// Three tables: the first look-up writes, the others add.
Work embedding_lookup(const Sizes& s) {
  const double distinct = s.step.distinct_tokens + s.step.distinct_positions + s.step.distinct_segments;
  return {2.0 * s.rows(), (5.0 * s.rows() + distinct * s.hidden) * s.element};
}

Work embedding_gradient(const Sizes& s) {
  const double distinct = s.step.distinct_tokens + s.step.distinct_positions + s.step.distinct_segments;
  return {3.0 * s.rows(), 3.0 * s.rows() * s.element + 2.0 * distinct * s.hidden * float_bytes};
}

/// Of 16-bit models: the values from the masters. The head's bias is nothing beside them, and in float all there is.
Work conversions(const Sizes& s) {
  const double values = s.step.precision == Precision::float32 ? 0.0 : s.step.parameters;
  return {0.0, (values + 2.0) * (float_bytes + s.element)};
}

/// Gradient, value and both moments are read; value and moments written.
Work adamw(const Sizes& s) { return {15.0 * s.step.parameters, 7.0 * s.step.parameters * float_bytes}; }

/// As AdamW, with one slot.
Work sgd(const Sizes& s) { return {6.0 * s.step.parameters, 5.0 * s.step.parameters * float_bytes}; }

Work squared_sums(const Sizes& s) { return {2.0 * s.step.parameters, s.step.parameters * float_bytes}; }

struct Formula {
  Work (*work)(const Sizes&);
  bool of_one_call;
};

const std::map<std::string, Formula, std::less<>>& formulas() {
  static const std::map<std::string, Formula, std::less<>> table = {
      {"mylos::Attention::backward", {attention_backward, true}},
      {"mylos::Attention::forward", {attention_forward, true}},
      {"mylos::Attention::row_sums", {attention_row_sums, true}},
      {"mylos::Attention::tensor_core_backward_keys", {tensor_core_backward_keys, true}},
      {"mylos::Attention::tensor_core_backward_queries", {tensor_core_backward_queries, true}},
      {"mylos::Attention::tensor_core_forward", {attention_forward, true}},
      {"mylos::activation::add_column_sums", {column_sums, false}},
      {"mylos::activation::convert", {conversions, false}},
      {"mylos::activation::gelu", {gelu_again, true}},
      {"mylos::column_sums::add", {partial_sums, false}},
      {"mylos::cross_entropy::span", {span_loss, true}},
      {"mylos::embedding::gradient", {embedding_gradient, false}},
      {"mylos::embedding::lookup", {embedding_lookup, false}},
      {"mylos::layer_norm::again", {layer_norm_again, true}},
      {"mylos::layer_norm::bias_dropout_residual", {layer_norm, true}},
      {"mylos::layer_norm::bias_dropout_residual_backward", {layer_norm_backward, true}},
      {"mylos::layer_norm::dropout", {embedding_norm, true}},
      {"mylos::layer_norm::dropout_backward", {embedding_norm_backward, true}},
      {"mylos::optimizer::adamw", {adamw, false}},
      {"mylos::optimizer::sgd", {sgd, false}},
      {"mylos::optimizer::squared_sums", {squared_sums, false}},
  };
  return table;
}

/// What FloatOperands converts: both operands, and the result where it has 16 bits and is not added to.
Work product_conversions(const GemmLabel& product) {
  const auto m = static_cast<double>(product.m), n = static_cast<double>(product.n), k = static_cast<double>(product.k);
  const auto input = static_cast<double>(bytes_of(product.input)),
             output = static_cast<double>(bytes_of(product.output));
  const bool narrows = product.output != Precision::float32 && !product.accumulates;
  return {0.0, (m * k + k * n) * (input + float_bytes) + (narrows ? m * n * (float_bytes + output) : 0.0)};
}

}  // namespace

std::optional<Work> kernel_work(std::string_view label, double calls, const data::BertConfig& model,
                                const StepShape& shape) {
  const auto found = formulas().find(label);
  if (found == formulas().end()) return std::nullopt;
  Work work = found->second.work(Sizes(model, shape));
  const double times = found->second.of_one_call ? calls / shape.micro_batches : 1.0;
  work.flops *= times;
  work.bytes *= times;
  return work;
}

std::optional<Work> kernel_work_within(const GemmLabel& product, std::string_view label) {
  const double elements = static_cast<double>(product.m) * static_cast<double>(product.n);
  const auto bytes = static_cast<double>(bytes_of(product.output));
  if (label == "mylos::activation::convert") return product_conversions(product);
  if (label == "mylos::gemm::accumulate") return Work{2.0 * elements, elements * (float_bytes + 2.0 * bytes)};
  if (label == "mylos::activation::add_bias") return Work{elements, 2.0 * elements * bytes};
  if (label == "mylos::activation::bias_gelu") return Work{(1.0 + gelu_flops) * elements, 3.0 * elements * bytes};
  if (label == "mylos::activation::gelu") return Work{gelu_flops * elements, 2.0 * elements * bytes};
  if (label == "mylos::activation::gelu_gradient") return Work{gelu_gradient_flops * elements, 3.0 * elements * bytes};
  return std::nullopt;
}

Work product_work(const GemmLabel& product) {
  const auto m = static_cast<double>(product.m), n = static_cast<double>(product.n), k = static_cast<double>(product.k);
  const auto input = static_cast<double>(bytes_of(product.input)),
             output = static_cast<double>(bytes_of(product.output));
  return {2.0 * m * n * k, (m * k + k * n) * input + (product.accumulates ? 2.0 : 1.0) * m * n * output};
}

}  // namespace mylos::app
