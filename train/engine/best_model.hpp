#pragma once

#include "train/engine/task.hpp"

#include <span>
#include <string>
#include <utility>

/// Tracks the best evaluation so far and decides on early stopping.
namespace mylos::train {

class BestModel {
 public:
  /// `best_by` is "loss", meaning the first of `kinds`, or the name of a metric. `patience` is the number of
  /// consecutive evaluations without improvement that end the run; 0 never does. Without kinds nothing is evaluated.
  BestModel(std::string best_by, std::size_t patience, std::span<const MetricKind> kinds);

  /// Returns true and keeps `metrics`, of the evaluation after `step`, if they are the best so far. The caller then
  /// exports the model. Errors: std::runtime_error listing the metrics if the selected metric is missing.
  bool offer(const Metrics& metrics, std::size_t step);

  bool out_of_patience() const { return patience_ > 0 && since_best_ >= patience_; }
  /// Returns the number of evaluations since the best one.
  std::size_t since_best() const { return since_best_; }
  /// Restores the state saved by an earlier start of the run: the metrics of the evaluation after `step`. `exported` is
  /// the step of the model in best/. If it is another one, an abandoned continuation of the run has replaced the best
  /// model. The same continuation replaces it again; if this one does not, its evaluation after the same number of
  /// steps counts as the best, or the one that would exhaust the patience before.
  void restore(Metrics metrics, std::size_t since_best, std::size_t step, std::size_t exported) {
    metrics_ = std::move(metrics);
    since_best_ = since_best;
    step_ = step;
    exported_ = exported;
  }
  /// Returns the metrics of the best evaluation; empty before the first.
  const Metrics& metrics() const { return metrics_; }
  /// Returns the number of steps before the best evaluation; 0 before the first.
  std::size_t step() const { return step_; }

 private:
  std::string best_by_;
  MetricKind kind_;  ///< the selected metric; the name is empty if there is none
  std::size_t patience_;
  std::size_t since_best_ = 0;
  std::size_t step_ = 0;      ///< of metrics_
  std::size_t exported_ = 0;  ///< of the model in best/
  Metrics metrics_;
};

}  // namespace mylos::train
