#include "tasks/language_modeling/sampling.hpp"

#include "tests/support/arrays.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace mylos::tasks {
namespace {

using namespace tests;
using ::testing::HasSubstr;

std::vector<float> some_logits(std::size_t count, double scale = 3.0) {
  const Values values = random_values(count, 17, scale);
  return {values.begin(), values.end()};
}

/// Returns the probabilities after transformers' processors temperature, top-k and top-p, applied one after the other.
Values twin_probabilities(const std::vector<float>& logits, const SamplingConfig& config) {
  Values scores;
  for (const float logit : logits) scores.push_back(static_cast<double>(logit) / config.temperature);
  constexpr double nothing = -std::numeric_limits<double>::infinity();
  const auto softmax = [&] {
    const double largest = *std::ranges::max_element(scores);
    Values all;
    for (const double score : scores) all.push_back(std::exp(score - largest));
    const double sum = std::accumulate(all.begin(), all.end(), 0.0);
    for (double& one : all) one /= sum;
    return all;
  };
  if (config.top_k && *config.top_k < scores.size()) {
    Values sorted = scores;
    std::ranges::sort(sorted, std::ranges::greater());
    for (double& score : scores) {
      if (score < sorted[*config.top_k - 1]) score = nothing;
    }
  }
  if (config.top_p) {
    const Values probabilities = softmax();
    std::vector<std::size_t> ascending(scores.size());
    std::iota(ascending.begin(), ascending.end(), std::size_t{0});
    std::ranges::stable_sort(ascending, {}, [&](std::size_t i) { return scores[i]; });
    double sum = 0.0;
    for (std::size_t i = 0; i + 1 < ascending.size(); ++i) {
      sum += probabilities[ascending[i]];
      if (sum <= 1.0 - *config.top_p) scores[ascending[i]] = nothing;
    }
  }
  return softmax();
}

TEST(Sampler, DrawsWithTheProbabilitiesOfTheTwin) {
  const std::vector<float> logits = some_logits(40);
  constexpr std::size_t draws = 40'000;
  const std::vector<SamplingConfig> settings = {{1.0, {}, {}},   {0.5, {}, {}},   {2.0, 7, {}},
                                                {1.0, {}, 0.6},  {1.5, 12, 0.8},  {1.0, 1, {}},
                                                {1.0, 400, 1.0}, {1.0, {}, 1e-9}, {0.7, 3, 0.999}};
  for (const SamplingConfig& config : settings) {
    Sampler sampler(config, 11);
    std::vector<std::size_t> counts(logits.size());
    for (std::size_t i = 0; i < draws; ++i)
      ++counts[static_cast<std::size_t>(sampler.choose(logits, i / 100, i % 100)->id)];
    const Values expected = twin_probabilities(logits, config);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double share = static_cast<double>(counts[i]) / draws;
      // Five standard deviations.
      EXPECT_NEAR(share, expected[i], 5.0 * std::sqrt(expected[i] * (1.0 - expected[i]) / draws) + 1e-12)
          << "token " << i << " at temperature " << config.temperature;
    }
  }
}

TEST(Sampler, TokensAsLikelyAsTheKthStay) {
  const std::vector<float> logits = {1.0f, 2.0f, 0.0f, 2.0f, 2.0f};
  Sampler sampler({1.0, 2, {}}, 3);
  std::map<std::int32_t, std::size_t> counts;
  for (std::size_t i = 0; i < 3000; ++i) ++counts[sampler.choose(logits, 0, i)->id];
  ASSERT_EQ(counts.size(), 3u);
  for (const std::int32_t id : {1, 3, 4}) EXPECT_NEAR(static_cast<double>(counts[id]), 1000.0, 150.0) << id;
}

TEST(Sampler, TheLikeliestAndItsProbability) {
  for (const std::size_t size : {1u, 31u, 32u, 1023u, 5000u}) {
    std::vector<float> logits = some_logits(size, 20.0);
    const auto largest = std::ranges::max_element(logits) - logits.begin();
    if (size > 40) logits[size - 2] = logits[static_cast<std::size_t>(largest)];  // a tie; the first one counts
    double sum = 0.0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    const ChosenToken token = *Sampler({}, 1).choose(logits, 0, 0);
    EXPECT_EQ(token.id, largest);
    EXPECT_NEAR(token.log_probability, static_cast<double>(logits[static_cast<std::size_t>(largest)]) - std::log(sum),
                1e-6);
    // The probability of a drawn token also comes from the model's own logits.
    const ChosenToken drawn = *Sampler({5.0, 3, 0.9}, 1).choose(logits, 0, 0);
    EXPECT_NEAR(drawn.log_probability, static_cast<double>(logits[static_cast<std::size_t>(drawn.id)]) - std::log(sum),
                1e-6);
  }
}

TEST(Sampler, DrawsAreOfSeedPromptAndPositionAlone) {
  const std::vector<float> logits = some_logits(500, 0.1);
  const auto draws = [&](std::uint64_t seed, std::uint64_t prompt, std::uint64_t first) {
    Sampler sampler({1.0, {}, {}}, seed);
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < 20; ++i) ids.push_back(sampler.choose(logits, prompt, first + i)->id);
    return ids;
  };
  const auto expected = draws(1, 2, 3);
  EXPECT_EQ(draws(1, 2, 3), expected);
  EXPECT_NE(draws(2, 2, 3), expected);
  EXPECT_NE(draws(1, 3, 3), expected);
  EXPECT_NE(draws(1, 2, 4), expected);
  EXPECT_EQ(draws(1, 2, 4).front(), expected[1]);
}

TEST(Sampler, ChoosesNothingWhereALogitIsNotFinite) {
  constexpr float infinite = std::numeric_limits<float>::infinity();
  for (const float wrong : {infinite, -infinite, std::nanf("")}) {
    for (const std::size_t position : {0u, 45u, 69u}) {
      std::vector<float> logits = some_logits(70);
      logits[position] = wrong;
      EXPECT_FALSE(Sampler({}, 1).choose(logits, 0, 0).has_value()) << wrong << " at " << position;
      EXPECT_FALSE(Sampler({1.0, 3, 0.5}, 1).choose(logits, 0, 0).has_value()) << wrong << " at " << position;
    }
  }
}

/// Weights that are NaN or all zero would choose no token.
TEST(Sampler, ExtremeTemperaturesChooseAToken) {
  const std::vector<float> logits = some_logits(100, 50.0);
  const auto largest = std::ranges::max_element(logits) - logits.begin();
  EXPECT_EQ(Sampler({1e-300, {}, 0.9}, 1).choose(logits, 0, 0)->id, largest);
  EXPECT_LT(Sampler({1e6, {}, {}}, 1).choose(logits, 0, 0)->id, 100);
}

TEST(Sampler, RefusesSettingsOutsideTheirRanges) {
  const auto error = [](const SamplingConfig& config) { return error_of([&] { Sampler(config, 0); }); };
  EXPECT_THAT(error({-1.0, {}, {}}), HasSubstr("the temperature is -1"));
  EXPECT_THAT(error({std::nan(""), {}, {}}), HasSubstr("the temperature is nan"));
  EXPECT_THAT(error({1.0, 0, {}}), HasSubstr("top-k is 0"));
  EXPECT_THAT(error({1.0, {}, 0.0}), HasSubstr("top-p is 0"));
  EXPECT_THAT(error({1.0, {}, 1.01}), HasSubstr("top-p is 1.01"));
}

}  // namespace
}  // namespace mylos::tasks
