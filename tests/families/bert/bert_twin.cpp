#include "tests/families/bert/bert_twin.hpp"

#include "families/bert/bert_body.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mylos::tests {
namespace {

/// Returns log sum exp(x[0], x[stride], ...) over `count` elements.
double log_sum_exp(const double* x, std::size_t count, std::size_t stride) {
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) sum += std::exp(x[i * stride]);
  return std::log(sum);
}

double gelu_twin(double x) { return 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0))); }

}  // namespace

TwinBatch::TwinBatch(const families::BertShape& shape, std::vector<std::size_t> sequence_lengths)
    : lengths(std::move(sequence_lengths)) {
  const auto draw = [](std::size_t bound, std::size_t stream, std::size_t i) {
    return static_cast<std::int32_t>(uniform_below(bound, 21, stream, i));
  };
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    ids.push_back(static_cast<std::uint32_t>(1000 - 3 * s));
    for (std::size_t i = 0; i < lengths[s]; ++i) {
      tokens.push_back(draw(shape.vocabulary, 0, tokens.size()));
      segments.push_back(draw(shape.token_types, 1, tokens.size()));
      positions.push_back(static_cast<std::int32_t>(i));
    }
    starts.push_back(s % 4 == 3 ? static_cast<std::int32_t>(lengths[s]) : draw(lengths[s], 2, s));
    ends.push_back(draw(lengths[s], 3, s));
  }
}

BatchShape TwinBatch::shape() const { return {lengths.size(), rows(), *std::ranges::max_element(lengths)}; }

void TwinBatch::fill(std::size_t begin, std::size_t end, Batch& batch) const {
  namespace names = nn::names;
  const auto first = std::accumulate(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(begin), 0ul);
  const auto part = std::span(lengths).subspan(begin, end - begin);
  const std::size_t count = std::accumulate(part.begin(), part.end(), std::size_t{0});
  batch.reset(part, std::span(ids).subspan(begin, end - begin));
  batch.set_indices(names::tokens, std::span(tokens).subspan(first, count));
  batch.set_indices(names::segments, std::span(segments).subspan(first, count));
  batch.group_positions();
  batch.set(names::start_labels, std::span(starts).subspan(begin, end - begin));
  batch.set(names::end_labels, std::span(ends).subspan(begin, end - begin));
}

BertTwin::BertTwin(const families::BertShape& shape, const Engine& engine, const TwinBatch& batch, bool dropout)
    : shape_(shape),
      table_(engine.store.table()),
      batch_(batch),
      seed_(engine.seed),
      step_(engine.step),
      dropout_(dropout) {
  for (std::size_t row = 0; row < table_.tensors().size(); ++row) parameters_.push_back(engine.values(row));
}

double BertTwin::kept(std::uint32_t site, float probability, std::size_t sequence, std::size_t position,
                      std::size_t lane, std::size_t column) const {
  if (!dropout_ || probability == 0.0f) return 1.0;
  const DropoutKey key{seed_, step_, site, probability};
  const DropoutDraw draw =
      dropout_draw(key, batch_.ids[sequence], static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(lane),
                   static_cast<std::uint32_t>(column / dropout_group));
  return draw[column % dropout_group] < key.threshold() ? 0.0 : 1.0 / (1.0 - static_cast<double>(probability));
}

void BertTwin::drop(std::uint32_t site, float probability, Values& x) const {
  std::size_t row = 0;
  for (std::size_t s = 0; s < batch_.lengths.size(); ++s) {
    for (std::size_t i = 0; i < batch_.lengths[s]; ++i, ++row) {
      for (std::size_t c = 0; c < shape_.hidden; ++c) x[row * shape_.hidden + c] *= kept(site, probability, s, i, 0, c);
    }
  }
}

const Values& BertTwin::named(const std::string& name) const { return parameters_[table_.find(name)]; }

Values BertTwin::linear(const std::string& name, const Values& x, std::size_t in, std::size_t out) const {
  const Values &weight = named(name + ".weight"), &bias = named(name + ".bias");
  Values y(x.size() / in * out);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double *row = x.data() + i / out * in, *w = weight.data() + i % out * in;
    y[i] = std::inner_product(row, row + in, w, bias[i % out]);
  }
  return y;
}

Values BertTwin::norm(const std::string& name, const Values& z) const {
  const Values &weight = named(name + ".weight"), &bias = named(name + ".bias");
  const std::size_t columns = shape_.hidden;
  const double count = static_cast<double>(columns);
  Values y(z.size());
  for (std::size_t row = 0; row < z.size() / columns; ++row) {
    const double* in = z.data() + row * columns;
    const double mean = std::accumulate(in, in + columns, 0.0) / count;
    double variance = 0.0;
    for (std::size_t c = 0; c < columns; ++c) variance += (in[c] - mean) * (in[c] - mean) / count;
    const double inverse = 1.0 / std::sqrt(variance + static_cast<double>(shape_.layer_norm_epsilon));
    for (std::size_t c = 0; c < columns; ++c) y[row * columns + c] = (in[c] - mean) * inverse * weight[c] + bias[c];
  }
  return y;
}

Values BertTwin::embeddings() const {
  const std::string prefix = "bert.embeddings.";
  const std::size_t hidden = shape_.hidden;
  Values z(batch_.rows() * hidden);
  for (std::size_t i = 0; i < z.size(); ++i) {
    const std::size_t row = i / hidden, c = i % hidden;
    z[i] = named(prefix + "word_embeddings.weight")[static_cast<std::size_t>(batch_.tokens[row]) * hidden + c] +
           named(prefix + "position_embeddings.weight")[static_cast<std::size_t>(batch_.positions[row]) * hidden + c] +
           named(prefix + "token_type_embeddings.weight")[static_cast<std::size_t>(batch_.segments[row]) * hidden + c];
  }
  Values y = norm(prefix + "LayerNorm", z);
  drop(0, shape_.hidden_dropout, y);
  return y;
}

Values BertTwin::attention(std::size_t index, const Values& x) const {
  const std::string name = fmt::format("bert.encoder.layer.{}.attention.self.", index);
  const std::size_t hidden = shape_.hidden, size = hidden / shape_.heads;
  const auto site = static_cast<std::uint32_t>(3 * index + 1);
  const Values q = linear(name + "query", x, hidden, hidden), k = linear(name + "key", x, hidden, hidden),
               v = linear(name + "value", x, hidden, hidden);
  Values context(x.size(), 0.0);
  std::size_t first = 0;
  for (std::size_t s = 0; s < batch_.lengths.size(); first += batch_.lengths[s++]) {
    for (std::size_t query = 0; query < batch_.lengths[s]; ++query) {
      for (std::size_t head = 0; head < shape_.heads; ++head) {
        const std::size_t at = (first + query) * hidden + head * size;
        Values scores(batch_.lengths[s]);
        for (std::size_t key = 0; key < scores.size(); ++key) {
          const double* keys = k.data() + (first + key) * hidden + head * size;
          scores[key] = std::inner_product(keys, keys + size, q.data() + at, 0.0) / std::sqrt(double(size));
        }
        const double normalizer = log_sum_exp(scores.data(), scores.size(), 1);
        for (std::size_t key = 0; key < scores.size(); ++key) {
          const double p =
              std::exp(scores[key] - normalizer) * kept(site, shape_.attention_dropout, s, query, head, key);
          for (std::size_t d = 0; d < size; ++d) context[at + d] += p * v[(first + key) * hidden + head * size + d];
        }
      }
    }
  }
  return context;
}

Values BertTwin::layer(std::size_t index, const Values& x) const {
  const std::string name = fmt::format("bert.encoder.layer.{}.", index);
  const auto site = static_cast<std::uint32_t>(3 * index);
  const std::size_t hidden = shape_.hidden, feed_forward = shape_.feed_forward;
  Values z = linear(name + "attention.output.dense", attention(index, x), hidden, hidden);
  drop(site + 2, shape_.hidden_dropout, z);
  std::ranges::transform(z, x, z.begin(), std::plus());
  const Values middle = norm(name + "attention.output.LayerNorm", z);
  Values inner = linear(name + "intermediate.dense", middle, hidden, feed_forward);
  std::ranges::transform(inner, inner.begin(), gelu_twin);
  z = linear(name + "output.dense", inner, feed_forward, hidden);
  drop(site + 3, shape_.hidden_dropout, z);
  std::ranges::transform(z, middle, z.begin(), std::plus());
  return norm(name + "output.LayerNorm", z);
}

Values BertTwin::logits() const {
  Values x = embeddings();
  for (std::size_t index = 0; index < shape_.layers; ++index) x = layer(index, x);
  return linear("qa_outputs", x, shape_.hidden, 2);
}

Values BertTwin::losses() const {
  const Values all = logits();
  Values losses;
  std::size_t first = 0;
  for (std::size_t s = 0; s < batch_.lengths.size(); first += batch_.lengths[s++]) {
    losses.push_back(0.0);
    const std::int32_t labels[2] = {batch_.starts[s], batch_.ends[s]};
    for (std::size_t which = 0; which < 2; ++which) {
      const double* column = all.data() + 2 * first + which;
      const auto label = static_cast<std::size_t>(labels[which]);
      if (label >= batch_.lengths[s]) continue;  // ignored
      losses.back() += 0.5 * (log_sum_exp(column, batch_.lengths[s], 2) - column[2 * label]);
    }
  }
  return losses;
}

}  // namespace mylos::tests
