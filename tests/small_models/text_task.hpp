#pragma once

#include "tests/small_models/causal_decoder.hpp"
#include "tests/small_models/generated_task.hpp"

/// Generated sentences. The first word names one of four dialects. In each dialect every word determines the next one,
/// except that one in ten words is random. The next word is therefore predictable only from the first and the last word
/// together.
namespace mylos::small_models {

inline constexpr std::size_t dialects = 4;
inline constexpr std::size_t dialect_words = 16;

struct TextTaskConfig {
  DecoderShape shape{.vocabulary = dialects + dialect_words};
  std::size_t chunk = 0;  ///< rows whose logits are held at once; 0 = the model's default
  std::size_t sentences = 2000;
  std::size_t shortest = 4;  ///< words; the longest sentence has shape.positions words
  std::size_t batch = 32;    ///< sentences per step
  std::size_t evaluation_sentences = 100;
  std::uint64_t seed = 11;
  std::filesystem::path start = {};  ///< an exported directory to start from
};

/// Returns the words of sentence `index`, one more than it has rows.
std::vector<std::int32_t> draw_sentence(const TextTaskConfig& config, std::size_t index);

/// Returns the expected loss per word, and the accuracy, of a model that knows the language exactly.
double language_entropy();
double language_accuracy();

/// Evaluates the loss and the accuracy of the words that the language determines.
class TextTask : public GeneratedTask {
 public:
  explicit TextTask(const TextTaskConfig& config);

  std::size_t rows_of(std::size_t sample) const override;
  /// Counts words, because a sample's loss is the sum over its rows.
  double weight(std::span<const std::size_t> samples) const override;
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;

 private:
  TextTaskConfig config_;
};

}  // namespace mylos::small_models
