#include "train/engine/best_model.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace mylos::train {
namespace {

constexpr const char* loss_metric = "validation_loss";

std::string names_of(const Metrics& metrics) {
  std::string names;
  for (const auto& [name, value] : metrics) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace

bool BestModel::offer(const Metrics& metrics) {
  const bool by_loss = best_by_ == "loss";
  const std::string name = by_loss ? loss_metric : best_by_;
  const double* value = find_metric(metrics, name);
  if (value == nullptr) fail(fmt::format("--best-by {}: the evaluation gives {}", best_by_, names_of(metrics)));
  const double* best = find_metric(metrics_, name);
  // A first value that is not a number must not stay the best for ever.
  const bool better = best == nullptr || std::isnan(*best) || (by_loss ? *value < *best : *value > *best);
  since_best_ = better ? 0 : since_best_ + 1;
  if (better) metrics_ = metrics;
  return better;
}

}  // namespace mylos::train
