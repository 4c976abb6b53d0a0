#include "tasks/language_modeling/language_evaluation.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace mylos::tasks {
namespace {

/// Tokens predicted at once: enough to fill the machine, few enough to stay in its caches.
constexpr std::size_t slice_tokens = 2048;

}  // namespace

LanguageEvaluation::LanguageEvaluation(data::SampleSet samples)
    : samples_(std::move(samples)), batcher_(samples_), slices_{0} {
  const auto rows = [&](std::size_t begin, std::size_t end) {
    return static_cast<std::size_t>(samples_.starts[end] - samples_.starts[begin]);
  };
  for (std::size_t sample = 0; sample < samples_.size(); ++sample) {
    if (sample > slices_.back() && rows(slices_.back(), sample + 1) > slice_tokens) slices_.push_back(sample);
    largest_.longest = std::max(largest_.longest, samples_.length(sample));
  }
  slices_.push_back(samples_.size());
  for (std::size_t slice = 0; slice + 1 < slices_.size(); ++slice) {
    largest_.samples = std::max(largest_.samples, slices_[slice + 1] - slices_[slice]);
    largest_.rows = std::max(largest_.rows, rows(slices_[slice], slices_[slice + 1]));
  }
}

std::vector<std::size_t> LanguageEvaluation::samples_of(std::size_t index) const {
  std::vector<std::size_t> samples(slices_[index + 1] - slices_[index]);
  std::iota(samples.begin(), samples.end(), slices_[index]);
  return samples;
}

void LanguageEvaluation::assemble(std::size_t index, Batch& batch) const {
  const std::vector<std::size_t> samples = samples_of(index);
  batcher_.assemble(samples, std::vector<std::uint32_t>(samples.begin(), samples.end()), batch);
}

void LanguageEvaluation::take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) {
  if (index == 0) {
    loss_sum_ = 0.0;
    right_ = 0;
  }
  loss_sum_ += std::accumulate(losses.begin(), losses.end(), 0.0);
  std::size_t row = 0;
  for (const std::size_t sample : samples_of(index)) {
    const auto ids = samples_.sample(sample);
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      if (static_cast<data::TokenId>(outputs[row + i]) == ids[i + 1]) ++right_;
    }
    row += ids.size();
  }
}

std::span<const train::MetricKind> LanguageEvaluation::kinds() const {
  static const std::array<train::MetricKind, 3> kinds = {{{"validation_loss", "Validation loss", "", false},
                                                          {"perplexity", "Perplexity", "", false},
                                                          {"accuracy", "Next-token accuracy"}}};
  return kinds;
}

train::Metrics LanguageEvaluation::score() {
  const auto predicted = static_cast<double>(samples_.predicted());
  const double loss = loss_sum_ / predicted, share = static_cast<double>(right_) / predicted;
  const nlohmann::ordered_json results = {
      {"loss", loss}, {"perplexity", std::exp(loss)}, {"accuracy", share}, {"tokens", samples_.predicted()}};
  results_ = results.dump(2) + "\n";
  return {{"validation_loss", loss}, {"perplexity", std::exp(loss)}, {"accuracy", share}};
}

}  // namespace mylos::tasks
