#include "train/engine/models/best_model.hpp"

#include "core/base/files/files.hpp"
#include "core/base/setting_error.hpp"

#include <algorithm>
#include <cmath>
#include <system_error>
#include <utility>

namespace mylos::train {
namespace {

std::string names_of(const Metrics& metrics) {
  std::string names;
  for (const auto& [name, value] : metrics) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace

BestModel::BestModel(BestConfig config, std::span<const MetricKind> kinds) : config_(std::move(config)) {
  if (kinds.empty()) return;
  const MetricKind* const kind = config_.by == "loss" ? &kinds.front() : find_kind(kinds, config_.by);
  if (kind != nullptr) kind_ = *kind;
}

bool BestModel::is_better(double value, double other) const {
  // Otherwise a first value of NaN would stay the best forever.
  return std::isnan(other) || (kind_.larger_is_better ? value > other : value < other);
}

BestModel::Place BestModel::offer(const Metrics& metrics, std::size_t step) {
  const double* const value = find_metric(metrics, kind_.name);
  if (value == nullptr) throw SettingError("best-by", config_.by, "the evaluation gives " + names_of(metrics));
  const double* const best = find_metric(state_.metrics, kind_.name);
  const bool exhausts_patience = config_.patience > 0 && state_.since_best + 1 >= config_.patience;
  const bool is_better_than_best = best == nullptr || is_better(*value, *best);
  const bool replaces_lost = !is_better_than_best && !is_exported() && (step >= exported_ || exhausts_patience);
  const double least_gain = kind_.larger_is_better ? config_.min_delta : -config_.min_delta;
  const bool improves = replaces_lost || !state_.goal || is_better(*value - least_gain, *state_.goal);
  state_.since_best = improves ? 0 : state_.since_best + 1;
  if (improves) state_.goal = *value;

  std::vector<ScoredStep>& kept = state_.kept;
  std::erase_if(kept, [&](const ScoredStep& each) { return each.step == step; });
  const auto place = std::ranges::find_if(kept, [&](const ScoredStep& each) { return is_better(*value, each.value); });
  const bool is_kept = static_cast<std::size_t>(place - kept.begin()) < config_.keep;
  kept.insert(place, {step, *value});
  if (kept.size() > config_.keep) kept.resize(config_.keep);
  if (!is_better_than_best && !replaces_lost) return is_kept ? Place::kept : Place::passed;
  state_.metrics = metrics;
  state_.step = exported_ = step;
  return Place::best;
}

void BestModel::restore(State state, std::size_t exported) {
  state_ = std::move(state);
  exported_ = exported;
  // Checkpoints of earlier versions have neither.
  const double* const value = find_metric(state_.metrics, kind_.name);
  if (value == nullptr) return;
  if (!state_.goal) state_.goal = *value;
  if (state_.kept.empty()) state_.kept = {{state_.step, *value}};
}

namespace fs = std::filesystem;

fs::path kept_model_path(std::size_t step) { return fs::path(kept_models_name) / std::to_string(step); }

void keep_best_as(const fs::path& output, std::size_t step) {
  const fs::path best = output / "best", kept = output / kept_model_path(step);
  if (fs::exists(kept) || !fs::exists(best)) return;
  StagedDirectory staged(kept);
  for (const DirectoryEntry& entry : list_directory(best)) {
    std::error_code no_links;
    fs::create_hard_link(best / entry.name, staged.path() / entry.name, no_links);
    if (no_links) fs::copy(best / entry.name, staged.path() / entry.name);
  }
  staged.commit();
}

void remove_other_models(const fs::path& output, const BestModel::State& state) {
  const fs::path models = output / kept_models_name;
  if (!fs::exists(models)) return;
  for (const DirectoryEntry& entry : list_directory(models)) {
    const bool is_kept = std::ranges::any_of(state.kept, [&](const ScoredStep& each) {
      return each.step != state.step && std::to_string(each.step) == entry.name;
    });
    if (!is_kept) fs::remove_all(models / entry.name);
  }
}

}  // namespace mylos::train
