#include "tests/small_models/span_task.hpp"

#include "core/random.hpp"
#include "families/bert/bert_model.hpp"

#include <algorithm>
#include <numeric>

namespace mylos::small_models {
namespace {

/// Streams of random numbers.
enum Stream : std::uint64_t { length_stream, token_stream, answer_stream };

/// The token at both ends of the answer.
constexpr std::int32_t mark = 1;
constexpr std::size_t draws = 4096;
/// Sequences per evaluation batch.
constexpr std::size_t evaluation_batch = 6;

std::size_t sequence_rows(const SpanTaskConfig& config, std::size_t sample) {
  if (sample == 0) return config.shape.positions;
  const std::size_t choices = config.shape.positions - config.shortest + 1;
  return config.shortest + uniform_below(choices, config.seed, length_stream, sample);
}

/// Draws these sequences into `spans`, and reuses its memory.
void draw(const SpanTaskConfig& config, std::span<const std::size_t> samples, Spans& spans) {
  spans.lengths.clear();
  for (auto* values : {&spans.tokens, &spans.segments, &spans.starts, &spans.ends}) values->clear();
  for (const std::size_t sample : samples) {
    const std::size_t rows = sequence_rows(config, sample), begin = spans.tokens.size();
    const auto draw_below = [&](std::uint64_t stream, std::size_t bound, std::size_t i) {
      return static_cast<std::int32_t>(uniform_below(bound, config.seed, stream, sample * draws + i));
    };
    for (std::size_t i = 0; i < rows; ++i) {
      spans.tokens.push_back(2 + draw_below(token_stream, config.shape.vocabulary - 2, i));
      spans.segments.push_back(i < rows / 3 ? 0 : 1);
    }
    const auto [start, end] = std::minmax({draw_below(answer_stream, rows, 0), draw_below(answer_stream, rows, 1)});
    spans.tokens[begin + static_cast<std::size_t>(start)] = mark;
    spans.tokens[begin + static_cast<std::size_t>(end)] = mark;
    spans.lengths.push_back(rows);
    spans.starts.push_back(start);
    spans.ends.push_back(end);
  }
}

void fill(const Spans& spans, std::span<const std::uint32_t> ids, Batch& batch) {
  namespace names = nn::names;
  batch.reset(spans.lengths, ids);
  batch.set_indices(names::tokens, spans.tokens);
  batch.set_indices(names::segments, spans.segments);
  batch.group_positions();
  batch.set(names::start_labels, std::span(spans.starts));
  batch.set(names::end_labels, std::span(spans.ends));
}

class SpanEvaluation final : public GeneratedEvaluation {
 public:
  explicit SpanEvaluation(const SpanTaskConfig& config) : config_(config) {}

  std::size_t batches() const override {
    return (config_.evaluation_sequences + evaluation_batch - 1) / evaluation_batch;
  }
  BatchShape largest_batch() const override {
    const std::size_t samples = std::min(evaluation_batch, config_.evaluation_sequences);
    return {samples, samples * config_.shape.positions, config_.shape.positions};
  }
  void assemble(std::size_t index, Batch& batch) const override {
    const Spans spans = spans_of(index);
    std::vector<std::uint32_t> ids(spans.lengths.size());
    std::iota(ids.begin(), ids.end(), 0u);
    fill(spans, ids, batch);
  }

 protected:
  double correct(std::size_t index, std::span<const float> logits) const override {
    const Spans spans = spans_of(index);
    const auto likeliest = [&](std::size_t first, std::size_t rows, std::size_t column) {
      std::size_t best = 0;
      for (std::size_t row = 1; row < rows; ++row) {
        if (logits[2 * (first + row) + column] > logits[2 * (first + best) + column]) best = row;
      }
      return static_cast<std::int32_t>(best);
    };
    double count = 0.0;
    for (std::size_t i = 0, first = 0; i < spans.lengths.size(); first += spans.lengths[i++]) {
      const bool start = likeliest(first, spans.lengths[i], 0) == spans.starts[i];
      count += start && likeliest(first, spans.lengths[i], 1) == spans.ends[i] ? 1.0 : 0.0;
    }
    return count;
  }
  double weight() const override { return static_cast<double>(config_.evaluation_sequences); }

 private:
  Spans spans_of(std::size_t index) const {
    const std::size_t begin = index * evaluation_batch;
    std::vector<std::size_t> samples(std::min(evaluation_batch, config_.evaluation_sequences - begin));
    std::iota(samples.begin(), samples.end(), config_.sequences + begin);
    Spans spans;
    draw(config_, samples, spans);
    return spans;
  }

  SpanTaskConfig config_;
};

}  // namespace

SpanTaskConfig even_spans(Precision precision) {
  SpanTaskConfig spans = uneven_spans(precision);
  spans.batch = 6;
  spans.evaluation_sequences = 0;
  spans.shape.hidden_dropout = spans.shape.attention_dropout = 0.0f;
  return spans;
}

SpanTaskConfig uneven_spans(Precision precision) {
  SpanTaskConfig spans{.precision = precision, .sequences = 30, .batch = 7, .evaluation_sequences = 14};
  spans.shape = {.vocabulary = 40,
                 .hidden = 16,
                 .layers = 2,
                 .heads = 2,
                 .feed_forward = 32,
                 .positions = 24,
                 .token_types = 2,
                 .hidden_dropout = 0.1f,
                 .attention_dropout = 0.1f};
  return spans;
}

static std::unique_ptr<nn::Model> make_spans(const SpanTaskConfig& config) {
  auto model = families::make_bert_question_answering(config.shape, config.precision);
  model->freeze(config.freeze);
  return model;
}

SpanTask::SpanTask(const SpanTaskConfig& config)
    : GeneratedTask(make_spans(config), config.sequences, config.batch, config.seed, {}), config_(config) {
  if (config.evaluation_sequences > 0) evaluation_ = std::make_unique<SpanEvaluation>(config);
}

std::size_t SpanTask::rows_of(std::size_t sample) const { return sequence_rows(config_, sample); }

void SpanTask::assemble(std::size_t, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                        Batch& batch) const {
  draw(config_, samples, drawn_);
  fill(drawn_, ids, batch);
}

}  // namespace mylos::small_models
