#include "train/engine/best_model.hpp"

#include "core/base/setting_error.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace mylos::train {
namespace {

std::string names_of(const Metrics& metrics) {
  std::string names;
  for (const auto& [name, value] : metrics) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace

BestModel::BestModel(std::string best_by, std::size_t patience, std::span<const MetricKind> kinds)
    : best_by_(std::move(best_by)), patience_(patience) {
  if (kinds.empty()) return;
  const MetricKind* const kind = best_by_ == "loss" ? &kinds.front() : find_kind(kinds, best_by_);
  if (kind != nullptr) kind_ = *kind;
}

bool BestModel::offer(const Metrics& metrics, std::size_t step) {
  const double* value = find_metric(metrics, kind_.name);
  if (value == nullptr) throw SettingError("best-by", best_by_, "the evaluation gives " + names_of(metrics));
  const bool exhausts_patience = patience_ > 0 && since_best_ + 1 >= patience_;
  const bool is_lost = exported_ != step_ && (step >= exported_ || exhausts_patience);
  const double* best = is_lost ? nullptr : find_metric(metrics_, kind_.name);
  // Otherwise a first value of NaN would stay the best forever.
  const bool better =
      best == nullptr || std::isnan(*best) || (kind_.larger_is_better ? *value > *best : *value < *best);
  since_best_ = better ? 0 : since_best_ + 1;
  if (better) {
    metrics_ = metrics;
    step_ = exported_ = step;
  }
  return better;
}

}  // namespace mylos::train
