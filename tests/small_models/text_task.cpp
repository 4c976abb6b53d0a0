#include "tests/small_models/text_task.hpp"

#include "core/random.hpp"
#include "families/llama/llama_model.hpp"
#include "nn/head.hpp"

namespace mylos::small_models {
namespace {

/// Streams of random numbers.
enum Stream : std::uint64_t { length_stream, slip_stream, word_stream };

/// One word in this many is random.
constexpr std::size_t slip = 10;
/// The maximum number of draws of a sentence from a stream.
constexpr std::size_t draws = 1024;

families::LlamaShape tiny_shape() {
  return {.vocabulary = vocabulary,
          .hidden = 48,
          .layers = 2,
          .heads = 4,
          .key_value_heads = 2,
          .head_size = 12,
          .feed_forward = 96,
          .positions = longest_sentence,
          .initializer_range = 0.08f,
          .tied = true};
}

}  // namespace

std::unique_ptr<nn::Model> tiny_llama() { return families::make_llama(tiny_shape(), Precision::float32); }

std::unique_ptr<nn::Model> windowed_llama() {
  families::LlamaShape shape = tiny_shape();
  shape.qkv_bias = shape.output_bias = shape.mlp_bias = shape.head_norms = true;
  shape.window = 5;
  shape.first_windowed = 1;
  return families::make_llama(shape, Precision::float32);
}

TextTask::TextTask(const TextTaskConfig& config, std::unique_ptr<nn::Model> model)
    : GeneratedTask(std::move(model), {.training = config.sentences,
                                       .batch = config.batch,
                                       .evaluated = config.evaluation_sentences,
                                       .seed = config.seed,
                                       .start = config.start}),
      config_(config) {}

std::size_t TextTask::rows_of(std::size_t sample) const {
  const std::size_t choices = longest_sentence - config_.shortest + 1;
  return config_.shortest + uniform_below(choices, config_.seed, length_stream, sample);
}

double TextTask::weight(std::span<const std::size_t> samples) const {
  std::size_t rows = 0;
  for (const std::size_t sample : samples) rows += rows_of(sample);
  return static_cast<double>(rows);
}

std::vector<std::int32_t> TextTask::draw(std::size_t sample) const {
  std::vector<std::int32_t> words;
  for (std::size_t i = 0; i <= rows_of(sample); ++i) {
    const std::size_t draw = sample * draws + i;
    const bool is_random = i == 0 || uniform_below(slip, config_.seed, slip_stream, draw) == 0;
    // An odd factor makes each word the successor of one other.
    const std::size_t word = is_random ? uniform_below(vocabulary, config_.seed, word_stream, draw)
                                       : (5 * static_cast<std::size_t>(words.back()) + 7) % vocabulary;
    words.push_back(static_cast<std::int32_t>(word));
  }
  return words;
}

void TextTask::fill(std::span<const std::size_t> samples, Batch& batch) const {
  std::vector<std::int32_t> tokens, labels;
  for (const std::size_t sample : samples) {
    const std::vector<std::int32_t> words = draw(sample);
    tokens.insert(tokens.end(), words.begin(), words.end() - 1);
    labels.insert(labels.end(), words.begin() + 1, words.end());
  }
  batch.set_indices(nn::names::tokens, tokens);
  batch.set(nn::names::labels, std::span<const std::int32_t>(labels));
}

double TextTask::correct(std::span<const std::size_t> samples, std::span<const float> likeliest) const {
  double count = 0.0;
  for (std::size_t row = 0; const std::size_t sample : samples) {
    const std::vector<std::int32_t> words = draw(sample);
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (static_cast<std::int32_t>(likeliest[row++]) == words[i]) count += 1.0;
    }
  }
  return count;
}

}  // namespace mylos::small_models
