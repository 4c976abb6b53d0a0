#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// How the next token is chosen from the logits.
namespace mylos::tasks {

struct SamplingConfig {
  double temperature = 0.0;          ///< 0: the likeliest token
  std::optional<std::size_t> top_k;  ///< choose among the k likeliest tokens
  std::optional<double> top_p;       ///< choose among the fewest likeliest tokens that have this probability together
};

struct ChosenToken {
  std::int32_t id = 0;
  /// Natural log of the token's probability by the logits as the model gives them: before temperature, top-k and top-p.
  double log_probability = 0.0;
};

/// Chooses tokens. Temperature comes first, then top-k, then top-p of what is left, as transformers orders its
/// processors; tokens that are as likely as the k-th stay. A draw is a function of (seed, prompt, position) alone.
/// Keeps memory between calls.
class Sampler {
 public:
  /// Errors: std::invalid_argument where a value is outside of its range.
  Sampler(const SamplingConfig& config, std::uint64_t seed);

  /// Chooses from logits (V) the token at `position` of prompt number `prompt`; the lowest id among equally likely ones
  /// where the temperature is 0. Nothing where a logit is not finite.
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
