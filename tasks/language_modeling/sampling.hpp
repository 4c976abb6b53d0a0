#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Chooses the next token from the logits.
namespace mylos::tasks {

struct SamplingConfig {
  double temperature = 0.0;          ///< 0: the most likely token
  std::optional<std::size_t> top_k;  ///< choose among the k most likely tokens
  std::optional<double> top_p;       ///< choose among the smallest set of most likely tokens with this total
                                     ///< probability
};

struct ChosenToken {
  std::int32_t id = 0;
  /// Natural log of the token's probability under the model's logits, before temperature, top-k and top-p.
  double log_probability = 0.0;
};

/// Chooses tokens. Applies temperature, then top-k, then top-p to the rest, in the order of transformers' processors.
/// Tokens tied with the k-th are kept. A draw is a function of (seed, prompt, position) alone. Keeps its buffers
/// between calls.
class Sampler {
 public:
  /// Errors: std::invalid_argument if a value is out of range.
  Sampler(const SamplingConfig& config, std::uint64_t seed);

  /// Chooses the token at `position` of prompt number `prompt` from logits (V). With temperature 0, the lowest id among
  /// equally likely tokens wins. Returns nullopt if a logit is not finite.
  std::optional<ChosenToken> choose(std::span<const float> logits, std::uint64_t prompt, std::uint64_t position);

 private:
  struct Candidate {
    std::int32_t id;
    double weight;  ///< probability times a constant
  };

  std::size_t draw(std::span<const float> logits, float largest, double uniform);
  void keep_top_k(std::span<const float> logits, float largest);
  void keep_top_p();

  SamplingConfig config_;
  std::uint64_t seed_;
  std::vector<float> likeliest_;
  std::vector<Candidate> candidates_;
};

}  // namespace mylos::tasks
