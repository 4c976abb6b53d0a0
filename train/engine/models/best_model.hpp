#pragma once

#include "train/engine/metrics.hpp"
#include "train/engine/train_config.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// Ranks evaluations: which models are kept as the best, and when a run stops early.
namespace mylos::train {

/// A model that is kept, and its value of the metric that selects.
struct ScoredStep {
  std::size_t step = 0;
  double value = 0.0;
};

class BestModel {
 public:
  enum class Place { best, kept, passed };

  /// What a checkpoint saves.
  struct State {
    Metrics metrics = {};               ///< of the best evaluation; empty before the first
    std::size_t step = 0;               ///< of the best evaluation; 0 before the first
    std::size_t since_best = 0;         ///< evaluations since the last that improved by more than min_delta
    std::optional<double> goal = {};    ///< the value of that one; nullopt before the first
    std::vector<ScoredStep> kept = {};  ///< at most BestConfig::keep, the best first
  };

  /// The metric of `config.by` is one of `kinds`; "loss" means the first of them. Without kinds nothing is evaluated.
  BestModel(BestConfig config, std::span<const MetricKind> kinds);

  /// Ranks the evaluation after `step`. The caller then exports the model if it is the best, or among those to keep.
  /// Errors: std::runtime_error listing the metrics if the selected metric is missing.
  Place offer(const Metrics& metrics, std::size_t step);

  bool out_of_patience() const { return config_.patience > 0 && state_.since_best >= config_.patience; }
  /// Returns whether best/ holds the model of state().step, and not that of an abandoned continuation.
  bool is_exported() const { return exported_ == state_.step; }
  const State& state() const { return state_; }
  const BestConfig& config() const { return config_; }
  /// Restores what an earlier start of the run saved. `exported` is the step of the model in best/. If it is another
  /// one than the state's, an abandoned continuation of the run has replaced the best model. The same continuation
  /// replaces it again; if this one does not, its evaluation after the same number of steps counts as the best, or the
  /// one that would exhaust the patience before.
  void restore(State state, std::size_t exported);

 private:
  bool is_better(double value, double other) const;

  BestConfig config_;
  MetricKind kind_;  ///< the selected metric; the name is empty if there is none
  State state_;
  std::size_t exported_ = 0;  ///< step of the model in best/
};

/// The directory of the other models that are kept: best-models/<step>/. best/ has the best one.
inline constexpr const char* kept_models_name = "best-models";

/// Returns the path in the output directory of the model after `step`, if it is not the best: "best-models/500".
std::filesystem::path kept_model_path(std::size_t step);

/// Gives the model in best/, after `step` steps, its own directory, too, before another replaces it. Its files are not
/// copied if the file system has hard links. Errors: std::runtime_error.
void keep_best_as(const std::filesystem::path& output, std::size_t step);

/// Removes the models in best-models/ that `state` does not keep there, also those of an abandoned continuation of the
/// run. Errors: std::runtime_error.
void remove_other_models(const std::filesystem::path& output, const BestModel::State& state);

}  // namespace mylos::train
