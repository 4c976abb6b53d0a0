#include "tests/families/llama/llama_twin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

namespace mylos::tests {

LlamaTwinBatch::LlamaTwinBatch(const families::LlamaShape& shape, std::vector<std::size_t> sequence_lengths)
    : lengths(std::move(sequence_lengths)) {
  for (const std::size_t length : lengths) {
    for (std::size_t i = 0; i < length; ++i) {
      tokens.push_back(static_cast<std::int32_t>(uniform_below(shape.vocabulary, 23, 0, tokens.size())));
      positions.push_back(static_cast<std::int32_t>(i));
    }
  }
  labels.assign(tokens.begin() + 1, tokens.end());
  labels.push_back(-1);
  std::size_t end = 0;
  for (const std::size_t length : lengths) labels[(end += length) - 1] = -1;
}

BatchShape LlamaTwinBatch::shape() const { return {lengths.size(), rows(), *std::ranges::max_element(lengths)}; }

void LlamaTwinBatch::fill(std::size_t begin, std::size_t end, Batch& batch) const {
  namespace names = nn::names;
  const auto first = std::accumulate(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(begin), 0ul);
  const auto part = std::span(lengths).subspan(begin, end - begin);
  const std::size_t count = std::accumulate(part.begin(), part.end(), std::size_t{0});
  std::vector<std::uint32_t> ids(end - begin);
  std::iota(ids.begin(), ids.end(), static_cast<std::uint32_t>(begin));
  batch.reset(part, ids);
  batch.set_indices(names::tokens, std::span(tokens).subspan(first, count));
  batch.set(names::labels, std::span(labels).subspan(first, count));
}

LlamaTwin::LlamaTwin(const families::LlamaShape& shape, const Engine& engine, const LlamaTwinBatch& batch)
    : shape_(shape), table_(engine.store.table()), batch_(batch) {
  for (std::size_t row = 0; row < table_.tensors().size(); ++row) parameters_.push_back(engine.values(row));
}

Values LlamaTwin::linear(const std::string& name, const Values& x, std::size_t in, bool has_bias) const {
  const Values& weight = named(name + ".weight");
  const std::size_t out = weight.size() / in;
  Values y(x.size() / in * out);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double* row = x.data() + i / out * in;
    y[i] = std::inner_product(row, row + in, weight.data() + i % out * in, 0.0);
  }
  if (!has_bias) return y;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += named(name + ".bias")[i % out];
  return y;
}

Values LlamaTwin::norm(const std::string& name, const Values& x) const {
  const Values& weight = named(name + ".weight");
  const std::size_t columns = weight.size();
  Values y(x.size());
  for (std::size_t first = 0; first < x.size(); first += columns) {
    const double squares = std::inner_product(&x[first], &x[first] + columns, &x[first], 0.0);
    const double inverse =
        1.0 / std::sqrt(squares / static_cast<double>(columns) + static_cast<double>(shape_.rms_norm_epsilon));
    for (std::size_t c = 0; c < columns; ++c) y[first + c] = x[first + c] * inverse * weight[c];
  }
  return y;
}

double LlamaTwin::frequency(std::size_t pair) const {
  const families::RotaryScaling& scaling = shape_.rope_scaling;
  const double plain = std::pow(shape_.rope_theta, -2.0 * static_cast<double>(pair) / double(shape_.head_size));
  if (scaling.kind == families::RotaryScaling::Kind::none) return plain;
  if (scaling.kind == families::RotaryScaling::Kind::linear) return plain / scaling.factor;
  if (scaling.kind == families::RotaryScaling::Kind::yarn) {
    // The pair that turns so often within the original positions. The test's are within the head and truncated.
    const auto pair_of = [&](double turns) {
      return double(shape_.head_size) *
             std::log(double(scaling.original_positions) / (2.0 * std::numbers::pi * turns)) /
             (2.0 * std::log(shape_.rope_theta));
    };
    const double low = std::floor(pair_of(scaling.fast)), high = std::ceil(pair_of(scaling.slow));
    const double ramp = std::clamp((double(pair) - low) / (high - low), 0.0, 1.0);
    return plain * (1.0 - ramp) + plain / scaling.factor * ramp;
  }
  // Number of waves in the original context length: below `low` the wave is long, above `high` it is short.
  const double waves = static_cast<double>(scaling.original_positions) * plain / (2.0 * std::numbers::pi);
  const double low = scaling.low_frequency_factor, high = scaling.high_frequency_factor;
  const double kept = std::clamp((waves - low) / (high - low), 0.0, 1.0);
  return kept * plain + (1.0 - kept) * plain / scaling.factor;
}

Values LlamaTwin::rotated(const Values& x, std::size_t heads) const {
  const std::size_t size = shape_.head_size, half = size / 2;
  const bool is_yarn = shape_.rope_scaling.kind == families::RotaryScaling::Kind::yarn;
  const double scale = is_yarn ? 0.1 * std::log(shape_.rope_scaling.factor) + 1.0 : 1.0;
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t in_head = i % size, pair = in_head % half;
    const double angle = batch_.positions[i / (heads * size)] * frequency(pair);
    y[i] = scale * (x[i] * std::cos(angle) + (in_head < half ? -x[i + half] : x[i - half]) * std::sin(angle));
  }
  return y;
}

Values LlamaTwin::heads_of(const std::string& name, const Values& x, std::size_t heads) const {
  const Values y = linear(name + "_proj", x, shape_.hidden, shape_.qkv_bias);
  return rotated(shape_.head_norms ? norm(name + "_norm", y) : y, heads);
}

Values LlamaTwin::attention(std::size_t layer, const std::string& name, const Values& x) const {
  const std::size_t size = shape_.head_size, heads = shape_.heads, shared = shape_.key_value_heads;
  const Values q = heads_of(name + "q", x, heads), k = heads_of(name + "k", x, shared),
               v = linear(name + "v_proj", x, shape_.hidden, shape_.qkv_bias);
  const std::size_t window = layer < shape_.first_windowed ? no_window : static_cast<std::size_t>(shape_.window);
  Values context(q.size(), 0.0);
  std::size_t first = 0;
  for (std::size_t s = 0; s < batch_.lengths.size(); first += batch_.lengths[s++]) {
    for (std::size_t query = first; query < first + batch_.lengths[s]; ++query) {
      for (std::size_t head = 0; head < heads; ++head) {
        const std::size_t at = (query * heads + head) * size, of_keys = head / (heads / shared);
        const auto key_at = [&](std::size_t key) { return (key * shared + of_keys) * size; };
        Values weights;
        const std::size_t first_seen = query - first < window ? first : query + 1 - window;
        for (std::size_t key = first_seen; key <= query; ++key) {
          const double score = std::inner_product(&q[at], &q[at] + size, &k[key_at(key)], 0.0);
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
        }
        const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
        for (std::size_t key = first_seen; key <= query; ++key) {
          const double weight = weights[key - first_seen] / sum;
          for (std::size_t d = 0; d < size; ++d) context[at + d] += weight * v[key_at(key) + d];
        }
      }
    }
  }
  return linear(name + "o_proj", context, heads * size, shape_.output_bias);
}

Values LlamaTwin::feed_forward(const std::string& name, const Values& x) const {
  Values gate = linear(name + "gate_proj", x, shape_.hidden, shape_.mlp_bias);
  const Values up = linear(name + "up_proj", x, shape_.hidden, shape_.mlp_bias);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1.0 + std::exp(-gate[i]));
  return linear(name + "down_proj", gate, shape_.feed_forward, shape_.mlp_bias);
}

Values LlamaTwin::logits() const {
  const Values& words = named("model.embed_tokens.weight");
  Values x(batch_.rows() * shape_.hidden);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto token = static_cast<std::size_t>(batch_.tokens[i / shape_.hidden]);
    x[i] = words[token * shape_.hidden + i % shape_.hidden];
  }
  const auto add = [&](const Values& y) { std::ranges::transform(x, y, x.begin(), std::plus()); };
  for (std::size_t layer = 0; layer < shape_.layers; ++layer) {
    const std::string name = fmt::format("model.layers.{}.", layer);
    add(attention(layer, name + "self_attn.", norm(name + "input_layernorm", x)));
    add(feed_forward(name + "mlp.", norm(name + "post_attention_layernorm", x)));
  }
  return linear(shape_.tied ? "model.embed_tokens" : "lm_head", norm("model.norm", x), shape_.hidden);
}

Values LlamaTwin::losses() const {
  const Values all = logits();
  Values losses;
  std::size_t row = 0;
  for (const std::size_t length : batch_.lengths) {
    losses.push_back(0.0);
    for (std::size_t i = 0; i < length; ++i, ++row) {
      if (batch_.labels[row] < 0) continue;
      const double* const logit = all.data() + row * shape_.vocabulary;
      double sum = 0.0;
      for (std::size_t word = 0; word < shape_.vocabulary; ++word) sum += std::exp(logit[word]);
      losses.back() += std::log(sum) - logit[batch_.labels[row]];
    }
  }
  return losses;
}

}  // namespace mylos::tests
