#include "tasks/language_modeling/language_evaluation.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <numeric>

namespace mylos::tasks {
LanguageEvaluation::LanguageEvaluation(data::SampleSet samples)
    : samples_(std::move(samples)), batcher_(samples_), slices_(samples_.lengths()) {}

void LanguageEvaluation::assemble(std::size_t index, Batch& batch) const {
  const std::vector<std::size_t> samples = slices_.samples(index);
  batcher_.assemble(samples, std::vector<std::uint32_t>(samples.begin(), samples.end()), batch);
}

void LanguageEvaluation::take(std::size_t index, std::span<const float> outputs, std::span<const float> losses) {
  if (index == 0) {
    loss_sum_ = 0.0;
    right_ = 0;
  }
  loss_sum_ += std::accumulate(losses.begin(), losses.end(), 0.0);
  std::size_t row = 0;
  for (const std::size_t sample : slices_.samples(index)) {
    const auto ids = samples_.sample(sample);
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const bool is_right = static_cast<data::TokenId>(outputs[row + i]) == ids[i + 1];
      if (is_right && samples_.is_supervised(samples_.starts[sample] + i + 1)) ++right_;
    }
    row += ids.size();
  }
}

std::span<const train::MetricKind> LanguageEvaluation::kinds() const {
  static const std::array<train::MetricKind, 3> kinds = {{{"validation_loss", "Validation loss", "", false},
                                                          {"perplexity", "Perplexity", "", false},
                                                          {"accuracy", "Accuracy"}}};
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
