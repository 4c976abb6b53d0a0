#include "tests/small_models/span_task.hpp"

#include "core/random.hpp"
#include "nn/bert_question_answering.hpp"

#include <algorithm>

namespace mylos::small_models {
namespace {

/// Streams of random numbers.
enum Stream : std::uint64_t { length_stream, token_stream, answer_stream };

/// The token that stands at both ends of the answer.
constexpr std::int32_t mark = 1;
constexpr std::size_t draws = 4096;

}  // namespace

SpanTask::SpanTask(const SpanTaskConfig& config)
    : GeneratedTask(nn::make_bert_question_answering(config.shape, config.precision), config.sequences, config.batch,
                    config.seed, {}),
      config_(config) {}

std::size_t SpanTask::rows_of(std::size_t sample) const {
  if (sample == 0) return config_.shape.positions;
  const std::size_t choices = config_.shape.positions - config_.shortest + 1;
  return config_.shortest + uniform_below(choices, config_.seed, length_stream, sample);
}

void SpanTask::append(std::size_t sample) const {
  const std::size_t rows = rows_of(sample), begin = tokens_.size();
  const auto draw = [&](std::uint64_t stream, std::size_t bound, std::size_t i) {
    return static_cast<std::int32_t>(uniform_below(bound, config_.seed, stream, sample * draws + i));
  };
  for (std::size_t i = 0; i < rows; ++i) {
    tokens_.push_back(2 + draw(token_stream, config_.shape.vocabulary - 2, i));
    segments_.push_back(i < rows / 3 ? 0 : 1);
    positions_.push_back(static_cast<std::int32_t>(i));
  }
  const auto [start, end] = std::minmax({draw(answer_stream, rows, 0), draw(answer_stream, rows, 1)});
  tokens_[begin + static_cast<std::size_t>(start)] = tokens_[begin + static_cast<std::size_t>(end)] = mark;
  lengths_.push_back(rows);
  starts_.push_back(start);
  ends_.push_back(end);
}

void SpanTask::assemble(std::span<const std::size_t> samples, std::span<const std::uint32_t> ids, Batch& batch) const {
  namespace names = nn::question_answering;
  lengths_.clear();
  for (auto* values : {&tokens_, &segments_, &positions_, &starts_, &ends_}) values->clear();
  for (const std::size_t sample : samples) append(sample);
  batch.reset(lengths_, ids);
  batch.set_indices(names::tokens, tokens_);
  batch.set_indices(names::segments, segments_);
  batch.set_indices(names::positions, positions_);
  batch.set(names::start_labels, starts_);
  batch.set(names::end_labels, ends_);
}

}  // namespace mylos::small_models
