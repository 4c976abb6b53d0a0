#include "tests/small_models/text_task.hpp"

#include "core/random.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mylos::small_models {
namespace {

/// Streams of random numbers.
enum Stream : std::uint64_t { length_stream, dialect_stream, slip_stream, word_stream };

/// One word in this many is any word.
constexpr std::size_t slip = 10;
/// Draws a sentence may take from a stream.
constexpr std::size_t draws = 1024;

std::size_t sentence_rows(const TextTaskConfig& config, std::size_t index) {
  return config.shortest +
         uniform_below(config.shape.positions - config.shortest + 1, config.seed, length_stream, index);
}

/// The word that follows `word` in a dialect: an affine map with an odd factor, so that each word follows one.
std::int32_t successor(std::size_t dialect, std::int32_t word) {
  constexpr std::size_t factor[dialects] = {3, 5, 11, 13}, shift[dialects] = {1, 7, 4, 9};
  const auto next = (factor[dialect] * (static_cast<std::size_t>(word) - dialects) + shift[dialect]) % dialect_words;
  return static_cast<std::int32_t>(dialects + next);
}

std::int32_t any_word(const TextTaskConfig& config, std::size_t draw) {
  return static_cast<std::int32_t>(dialects + uniform_below(dialect_words, config.seed, word_stream, draw));
}

constexpr double slip_rate = 1.0 / static_cast<double>(slip);

}  // namespace

double language_accuracy() { return 1.0 - slip_rate + slip_rate / static_cast<double>(dialect_words); }

double language_entropy() {
  const double other = slip_rate / static_cast<double>(dialect_words), right = language_accuracy();
  return -right * std::log(right) - static_cast<double>(dialect_words - 1) * other * std::log(other);
}

std::vector<std::int32_t> draw_sentence(const TextTaskConfig& config, std::size_t index) {
  const std::size_t rows = sentence_rows(config, index);
  const std::size_t dialect = uniform_below(dialects, config.seed, dialect_stream, index);
  std::vector<std::int32_t> words{static_cast<std::int32_t>(dialect), any_word(config, index * draws)};
  for (std::size_t i = 2; i <= rows; ++i) {
    const bool slipped = uniform_below(slip, config.seed, slip_stream, index * draws + i) == 0;
    words.push_back(slipped ? any_word(config, index * draws + i) : successor(dialect, words.back()));
  }
  return words;
}

TextTask::TextTask(const TextTaskConfig& config)
    : GeneratedTask(make_causal_decoder(config.shape, config.chunk), config.sentences, config.batch, config.seed,
                    config.start),
      config_(config) {}

std::size_t TextTask::rows_of(std::size_t sample) const { return sentence_rows(config_, sample); }

double TextTask::weight(std::span<const std::size_t> samples) const {
  double rows = 0.0;
  // The first word after the dialect's name is any word: nothing is to be learned from it.
  for (const std::size_t sample : samples) rows += static_cast<double>(rows_of(sample) - 1);
  return rows;
}

void TextTask::assemble(std::span<const std::size_t> samples, std::span<const std::uint32_t> ids, Batch& batch) const {
  lengths_.clear();
  tokens_.clear();
  positions_.clear();
  labels_.clear();
  for (const std::size_t sample : samples) {
    const std::vector<std::int32_t> words = draw_sentence(config_, sample);
    lengths_.push_back(words.size() - 1);
    tokens_.insert(tokens_.end(), words.begin(), words.end() - 1);
    labels_.push_back(-1);
    labels_.insert(labels_.end(), words.begin() + 2, words.end());
    for (std::size_t i = 0; i + 1 < words.size(); ++i) positions_.push_back(static_cast<std::int32_t>(i));
  }
  batch.reset(lengths_, ids);
  batch.set_indices(words::tokens, tokens_);
  batch.set_indices(words::positions, positions_);
  batch.set(words::labels, labels_);
}

std::vector<std::size_t> TextTask::evaluation_samples() const {
  std::vector<std::size_t> samples(config_.evaluation_sentences);
  std::iota(samples.begin(), samples.end(), config_.sentences);
  return samples;
}

BatchShape TextTask::evaluation_shape() const {
  BatchShape shape{config_.evaluation_sentences, 0, config_.shape.positions};
  for (const std::size_t sample : evaluation_samples()) shape.rows += rows_of(sample);
  return shape;
}

train::Metrics TextTask::evaluate(train::Predictor& predictor) {
  const std::vector<std::size_t> samples = evaluation_samples();
  std::vector<std::uint32_t> ids(samples.size());
  std::iota(ids.begin(), ids.end(), 0u);
  Batch batch;
  assemble(samples, ids, batch);
  std::vector<float> losses(samples.size());
  const std::span<const float> likeliest = predictor.predict(batch, losses);
  double correct = 0.0;
  for (std::size_t row = 0; row < labels_.size(); ++row) {
    if (static_cast<std::int32_t>(likeliest[row]) == labels_[row]) correct += 1.0;
  }
  const double words = weight(samples);
  last_metrics_ = {{"validation_loss", std::accumulate(losses.begin(), losses.end(), 0.0) / words},
                   {"accuracy", correct / words}};
  return last_metrics_;
}

}  // namespace mylos::small_models
