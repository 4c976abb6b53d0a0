#include "train/engine/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::train {

const double* find_metric(const Metrics& metrics, const std::string& name) {
  const auto found = std::ranges::find(metrics, name, &Metrics::value_type::first);
  return found == metrics.end() ? nullptr : &found->second;
}

const MetricKind* find_kind(std::span<const MetricKind> kinds, const std::string& name) {
  const auto found = std::ranges::find(kinds, name, &MetricKind::name);
  return found == kinds.end() ? nullptr : &*found;
}

std::string metric_title(std::span<const MetricKind> kinds, const std::string& name) {
  const MetricKind* const kind = find_kind(kinds, name);
  if (kind != nullptr && !kind->title.empty()) return kind->title;
  std::string title = name;
  std::ranges::replace(title, '_', ' ');
  if (!title.empty() && title.front() >= 'a' && title.front() <= 'z')
    title.front() = static_cast<char>(title.front() - 32);
  return title;
}

std::string metrics_text(const Metrics& metrics) {
  constexpr std::size_t most = 3;
  std::string text;
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    auto [name, value] = metrics[i];
    if (i >= most && !name.starts_with(training_prefix)) continue;
    std::ranges::replace(name, '_', ' ');
    text += fmt::format("{}{} {:.5g}", i == 0 ? "" : ", ", name, value);
  }
  return text;
}

}  // namespace mylos::train
