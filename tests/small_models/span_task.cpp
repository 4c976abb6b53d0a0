#include "tests/small_models/span_task.hpp"

#include "core/random.hpp"

#include <algorithm>

namespace mylos::small_models {
namespace {

/// Streams of random numbers.
enum Stream : std::uint64_t { length_stream, token_stream, answer_stream };

/// The token at both ends of the answer.
constexpr std::int32_t mark = 1;
constexpr std::size_t draws = 4096;

std::unique_ptr<nn::Model> make_spans(const SpanTaskConfig& config) {
  auto model = families::make_bert_question_answering(config.shape, config.precision);
  model->freeze(config.freeze);
  return model;
}

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

SpanTask::SpanTask(const SpanTaskConfig& config)
    : GeneratedTask(make_spans(config), {.training = config.sequences,
                                         .batch = config.batch,
                                         .evaluated = config.evaluation_sequences,
                                         .seed = config.seed}),
      config_(config) {}

std::size_t SpanTask::rows_of(std::size_t sample) const {
  if (sample == 0) return config_.shape.positions;
  const std::size_t choices = config_.shape.positions - config_.shortest + 1;
  return config_.shortest + uniform_below(choices, config_.seed, length_stream, sample);
}

SpanTask::Span SpanTask::draw(std::size_t sample) const {
  const std::size_t rows = rows_of(sample);
  const auto draw_below = [&](std::uint64_t stream, std::size_t bound, std::size_t i) {
    return static_cast<std::int32_t>(uniform_below(bound, config_.seed, stream, sample * draws + i));
  };
  const auto [start, end] = std::minmax({draw_below(answer_stream, rows, 0), draw_below(answer_stream, rows, 1)});
  Span span{.tokens = std::vector<std::int32_t>(rows), .start = start, .end = end};
  for (std::size_t i = 0; i < rows; ++i) {
    const bool is_end = std::cmp_equal(i, start) || std::cmp_equal(i, end);
    span.tokens[i] = is_end ? mark : 2 + draw_below(token_stream, config_.shape.vocabulary - 2, i);
  }
  return span;
}

void SpanTask::fill(std::span<const std::size_t> samples, Batch& batch) const {
  std::vector<std::int32_t> tokens, segments, starts, ends;
  for (const std::size_t sample : samples) {
    const Span span = draw(sample);
    const std::size_t rows = span.tokens.size();
    tokens.insert(tokens.end(), span.tokens.begin(), span.tokens.end());
    segments.insert(segments.end(), rows / 3, 0);
    segments.insert(segments.end(), rows - rows / 3, 1);
    starts.push_back(span.start);
    ends.push_back(span.end);
  }
  namespace names = nn::names;
  batch.set_indices(names::tokens, tokens);
  batch.set_indices(names::segments, segments);
  batch.group_positions();
  batch.set(names::start_labels, std::span<const std::int32_t>(starts));
  batch.set(names::end_labels, std::span<const std::int32_t>(ends));
}

double SpanTask::correct(std::span<const std::size_t> samples, std::span<const float> logits) const {
  double count = 0.0;
  for (std::size_t first = 0; const std::size_t sample : samples) {
    const Span span = draw(sample);
    const auto likeliest = [&](std::size_t column) {
      std::size_t best = 0;
      for (std::size_t row = 1; row < span.tokens.size(); ++row) {
        if (logits[2 * (first + row) + column] > logits[2 * (first + best) + column]) best = row;
      }
      return static_cast<std::int32_t>(best);
    };
    if (likeliest(0) == span.start && likeliest(1) == span.end) count += 1.0;
    first += span.tokens.size();
  }
  return count;
}

}  // namespace mylos::small_models
