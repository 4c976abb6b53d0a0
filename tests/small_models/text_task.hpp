#pragma once

#include "tests/small_models/causal_decoder.hpp"
#include "tests/small_models/generated_task.hpp"

/// Generated sentences: the first word names one of four dialects, and in each dialect every word has one that follows
/// it, but for one in ten that is any word. So the next word is known only from the first and the last together.
namespace mylos::small_models {

inline constexpr std::size_t dialects = 4;
inline constexpr std::size_t dialect_words = 16;

struct TextTaskConfig {
  DecoderShape shape{.vocabulary = dialects + dialect_words};
  std::size_t chunk = 0;  ///< rows whose logits are held at once; 0 = the model's choice
  std::size_t sentences = 2000;
  std::size_t shortest = 4;  ///< words; the longest is shape.positions
  std::size_t batch = 32;    ///< sentences a step
  std::size_t evaluation_sentences = 100;
  std::uint64_t seed = 11;
  std::filesystem::path start = {};  ///< an exported directory to begin from
};

/// Words of sentence `index`, one more than its rows.
std::vector<std::int32_t> draw_sentence(const TextTaskConfig& config, std::size_t index);

/// The expected loss of a word from one who knows the language, and how often the likeliest word is right.
double language_entropy();
double language_accuracy();

/// Evaluates the loss of a word that the language says something about, and how often the likeliest is right.
class TextTask final : public GeneratedTask {
 public:
  explicit TextTask(const TextTaskConfig& config);

  std::size_t rows_of(std::size_t sample) const override;
  /// Words, because a sample's loss is the sum over its rows.
  double weight(std::span<const std::size_t> samples) const override;
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override;

 private:
  TextTaskConfig config_;
};

}  // namespace mylos::small_models
