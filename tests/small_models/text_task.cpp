#include "tests/small_models/text_task.hpp"

#include "core/random.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mylos::small_models {
namespace {

/// Streams of random numbers.
enum Stream : std::uint64_t { length_stream, dialect_stream, slip_stream, word_stream };

/// One word in this many is random.
constexpr std::size_t slip = 10;
/// Sentences per evaluation batch.
constexpr std::size_t evaluation_batch = 30;
/// The maximum number of draws of a sentence from a stream.
constexpr std::size_t draws = 1024;

std::size_t sentence_rows(const TextTaskConfig& config, std::size_t index) {
  return config.shortest +
         uniform_below(config.shape.positions - config.shortest + 1, config.seed, length_stream, index);
}

/// Returns the word that follows `word` in a dialect: an affine map with an odd factor, so that it is a bijection.
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

namespace {

/// Sentences stored one after the other, with the word that follows each.
struct Sentences {
  std::vector<std::size_t> lengths;
  std::vector<std::int32_t> tokens, labels;
};

Sentences draw_sentences(const TextTaskConfig& config, std::span<const std::size_t> samples) {
  Sentences all;
  for (const std::size_t sample : samples) {
    const std::vector<std::int32_t> words = draw_sentence(config, sample);
    all.lengths.push_back(words.size() - 1);
    all.tokens.insert(all.tokens.end(), words.begin(), words.end() - 1);
    all.labels.push_back(-1);
    all.labels.insert(all.labels.end(), words.begin() + 2, words.end());
  }
  return all;
}

void fill(const Sentences& sentences, std::span<const std::uint32_t> ids, Batch& batch) {
  batch.reset(sentences.lengths, ids);
  batch.set_indices(words::tokens, sentences.tokens);
  batch.group_positions();
  batch.set(words::labels, std::span(sentences.labels));
}

/// Returns the number of words that can be learned: all but the first one after the dialect's name.
double weight_of(const TextTaskConfig& config, std::span<const std::size_t> samples) {
  double rows = 0.0;
  for (const std::size_t sample : samples) rows += static_cast<double>(sentence_rows(config, sample) - 1);
  return rows;
}

/// Evaluates on sentences that are not used for training.
class TextEvaluation final : public GeneratedEvaluation {
 public:
  explicit TextEvaluation(const TextTaskConfig& config) : config_(config) {}

  std::size_t batches() const override {
    return (config_.evaluation_sentences + evaluation_batch - 1) / evaluation_batch;
  }
  BatchShape largest_batch() const override {
    BatchShape largest{std::min(evaluation_batch, config_.evaluation_sentences), 0, config_.shape.positions};
    for (std::size_t index = 0; index < batches(); ++index) {
      std::size_t rows = 0;
      for (const std::size_t sample : samples_of(index)) rows += sentence_rows(config_, sample);
      largest.rows = std::max(largest.rows, rows);
    }
    return largest;
  }
  void assemble(std::size_t index, Batch& batch) const override {
    const std::vector<std::size_t> samples = samples_of(index);
    std::vector<std::uint32_t> ids(samples.size());
    std::iota(ids.begin(), ids.end(), 0u);
    fill(draw_sentences(config_, samples), ids, batch);
  }

 protected:
  double correct(std::size_t index, std::span<const float> likeliest) const override {
    const std::vector<std::int32_t> labels = draw_sentences(config_, samples_of(index)).labels;
    double count = 0.0;
    for (std::size_t row = 0; row < labels.size(); ++row) {
      if (static_cast<std::int32_t>(likeliest[row]) == labels[row]) count += 1.0;
    }
    return count;
  }
  double weight() const override {
    std::vector<std::size_t> all(config_.evaluation_sentences);
    std::iota(all.begin(), all.end(), config_.sentences);
    return weight_of(config_, all);
  }

 private:
  std::vector<std::size_t> samples_of(std::size_t index) const {
    const std::size_t begin = index * evaluation_batch;
    std::vector<std::size_t> samples(std::min(evaluation_batch, config_.evaluation_sentences - begin));
    std::iota(samples.begin(), samples.end(), config_.sentences + begin);
    return samples;
  }

  TextTaskConfig config_;
};

}  // namespace

TextTask::TextTask(const TextTaskConfig& config)
    : GeneratedTask(make_causal_decoder(config.shape, config.chunk), config.sentences, config.batch, config.seed,
                    config.start),
      config_(config) {
  evaluation_ = std::make_unique<TextEvaluation>(config);
}

std::size_t TextTask::rows_of(std::size_t sample) const { return sentence_rows(config_, sample); }

double TextTask::weight(std::span<const std::size_t> samples) const { return weight_of(config_, samples); }

void TextTask::assemble(std::size_t, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                        Batch& batch) const {
  fill(draw_sentences(config_, samples), ids, batch);
}

}  // namespace mylos::small_models
