#include "tasks/language_modeling/sampling.hpp"

#include "core/base/error.hpp"
#include "core/kernels/math.hpp"
#include "core/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

namespace mylos::tasks {
namespace {

constexpr std::size_t lanes = 32;
constexpr std::size_t block = 1024;  ///< exponentials summed in float before they are added in double

/// Separates the draws of tokens from other draws with the same seed.
constexpr std::uint64_t sampling_site = 0x746f6b656eu << 24U;

struct Largest {
  float value = -std::numeric_limits<float>::infinity();
  bool all_finite = true;
};

/// The loops over lanes are vectorised by the compiler.
Largest find_largest(std::span<const float> logits) {
  float largest[lanes], nothing[lanes] = {};
  std::fill(std::begin(largest), std::end(largest), -std::numeric_limits<float>::infinity());
  const auto take = [&](std::size_t lane, float value) {
    largest[lane] = largest[lane] < value ? value : largest[lane];
    nothing[lane] += value - value;  // 0, or NaN if the value is not finite
  };
  const std::size_t whole = logits.size() - logits.size() % lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t j = 0; j < lanes; ++j) take(j, logits[i + j]);
  }
  for (std::size_t i = whole; i < logits.size(); ++i) take(i - whole, logits[i]);
  Largest found;
  for (std::size_t j = 0; j < lanes; ++j) {
    found.value = std::max(found.value, largest[j]);
    found.all_finite = found.all_finite && nothing[j] == 0.0f;
  }
  return found;
}

/// Returns the sum of exp(logit - largest).
double sum_of_exponentials(std::span<const float> logits, float largest) {
  double sum = 0.0;
  for (std::size_t begin = 0; begin < logits.size(); begin += block) {
    const std::span part = logits.subspan(begin, std::min(block, logits.size() - begin));
    float lane[lanes] = {};
    const std::size_t whole = part.size() - part.size() % lanes;
    for (std::size_t i = 0; i < whole; i += lanes) {
      for (std::size_t j = 0; j < lanes; ++j) lane[j] += exp_approximate(part[i + j] - largest);
    }
    for (std::size_t i = whole; i < part.size(); ++i) lane[i - whole] += exp_approximate(part[i] - largest);
    for (const float one : lane) sum += static_cast<double>(one);
  }
  return sum;
}

/// Draws uniformly from [0, 1) with 53 bits.
double draw_uniform(std::uint64_t seed, std::uint64_t prompt, std::uint64_t position) {
  const RandomWords words = philox(seed, prompt, sampling_site ^ position);
  const std::uint64_t bits = (std::uint64_t{words.word[0]} << 32U) | words.word[1];
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

}  // namespace

Sampler::Sampler(const SamplingConfig& config, std::uint64_t seed) : config_(config), seed_(seed) {
  require(config.temperature >= 0.0 && std::isfinite(config.temperature),
          fmt::format("the temperature is {}, which must be finite and at least 0", config.temperature));
  require(!config.top_k || *config.top_k > 0, "top-k is 0, which must be at least 1");
  require(!config.top_p || (*config.top_p > 0.0 && *config.top_p <= 1.0),
          fmt::format("top-p is {}, which must be above 0 and at most 1", config.top_p.value_or(0.0)));
}

std::optional<ChosenToken> Sampler::choose(std::span<const float> logits, std::uint64_t prompt,
                                           std::uint64_t position) {
  const Largest largest = find_largest(logits);
  if (logits.empty() || !largest.all_finite) return std::nullopt;
  const std::size_t chosen = config_.temperature == 0.0
                                 ? static_cast<std::size_t>(std::ranges::find(logits, largest.value) - logits.begin())
                                 : draw(logits, largest.value, draw_uniform(seed_, prompt, position));
  const double difference = static_cast<double>(logits[chosen]) - static_cast<double>(largest.value);
  return ChosenToken{static_cast<std::int32_t>(chosen),
                     difference - std::log(sum_of_exponentials(logits, largest.value))};
}

std::size_t Sampler::draw(std::span<const float> logits, float largest, double uniform) {
  keep_top_k(logits, largest);
  if (config_.top_p && *config_.top_p < 1.0) keep_top_p();
  double total = 0.0;
  for (const Candidate& one : candidates_) total += one.weight;
  double passed = 0.0;
  for (const Candidate& one : candidates_) {
    passed += one.weight;
    if (passed > uniform * total) return static_cast<std::size_t>(one.id);
  }
  return static_cast<std::size_t>(candidates_.back().id);  // if rounding leaves no larger one
}

void Sampler::keep_top_k(std::span<const float> logits, float largest) {
  float least = -std::numeric_limits<float>::infinity();
  if (config_.top_k && *config_.top_k < logits.size()) {
    likeliest_.resize(*config_.top_k);
    std::ranges::partial_sort_copy(logits, likeliest_, std::ranges::greater());
    least = likeliest_.back();
  }
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] < least) continue;
    const double difference = static_cast<double>(logits[i]) - static_cast<double>(largest);
    const double weight = std::exp(difference / config_.temperature);
    if (weight > 0.0) candidates_.push_back({static_cast<std::int32_t>(i), weight});
  }
}

/// Pops the most likely candidates from a heap until they suffice: usually only a few of many.
void Sampler::keep_top_p() {
  double total = 0.0;
  for (const Candidate& one : candidates_) total += one.weight;
  const auto is_less = [](const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight < b.weight : a.id > b.id;
  };
  std::ranges::make_heap(candidates_, is_less);
  auto end = candidates_.end();
  double passed = 0.0;
  while (end != candidates_.begin() && passed < *config_.top_p * total) {
    std::ranges::pop_heap(candidates_.begin(), end, is_less);
    passed += (--end)->weight;
  }
  candidates_.erase(candidates_.begin(), end);
  std::ranges::reverse(candidates_);  // most likely first
}

}  // namespace mylos::tasks
