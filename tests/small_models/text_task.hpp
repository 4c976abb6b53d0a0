#pragma once

#include "tests/small_models/generated_task.hpp"

#include <vector>

namespace mylos::small_models {

/// The number of different words.
inline constexpr std::size_t vocabulary = 16;
inline constexpr std::size_t longest_sentence = 32;

struct TextTaskConfig {
  std::size_t sentences = 60;
  std::size_t shortest = 4;  ///< words
  std::size_t batch = 9;     ///< sentences per step
  std::size_t evaluation_sentences = 70;
  std::uint64_t seed = 11;
  std::filesystem::path start = {};  ///< an exported directory to start from
};

/// Returns a Llama of two layers with grouped queries and tied embeddings.
std::unique_ptr<nn::Model> tiny_llama();
/// The same with biases, norms of heads, and in the second layer a window of 5 words.
std::unique_ptr<nn::Model> windowed_llama();

/// A model that predicts the next word of generated sentences. A word determines the next one, except that one word in
/// ten is random.
class TextTask : public GeneratedTask {
 public:
  explicit TextTask(const TextTaskConfig& config = {}, std::unique_ptr<nn::Model> model = tiny_llama());

  std::size_t rows_of(std::size_t sample) const override;
  /// Counts words, because a sample's loss is the sum over its rows.
  double weight(std::span<const std::size_t> samples) const override;

 protected:
  void fill(std::span<const std::size_t> samples, Batch& batch) const override;
  double correct(std::span<const std::size_t> samples, std::span<const float> likeliest) const override;

 private:
  /// Returns the words of a sentence, one more than it has rows.
  std::vector<std::int32_t> draw(std::size_t sample) const;

  TextTaskConfig config_;
};

}  // namespace mylos::small_models
