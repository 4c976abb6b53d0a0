#pragma once

#include "train/engine/task.hpp"

#include <span>
#include <string>
#include <utility>

/// Which evaluation was the best so far, and whether it is time to stop.
namespace mylos::train {

class BestModel {
 public:
  /// `best_by` is "loss", which is the first of `kinds`, or a metric's name; `patience` evaluations in a row without a
  /// better one end the run, 0 never does. Without kinds nothing is evaluated.
  BestModel(std::string best_by, std::size_t patience, std::span<const MetricKind> kinds);

  /// Takes the evaluation's place as the best if it is better. Errors: std::runtime_error listing the metrics if the
  /// one to go by is not among them.
  bool offer(const Metrics& metrics);

  bool out_of_patience() const { return patience_ > 0 && since_best_ >= patience_; }
  /// Evaluations since the best one.
  std::size_t since_best() const { return since_best_; }
  /// Goes on from where another start of the run was.
  void restore(Metrics metrics, std::size_t since_best) {
    metrics_ = std::move(metrics);
    since_best_ = since_best;
  }
  /// Of the best evaluation; empty before the first.
  const Metrics& metrics() const { return metrics_; }

 private:
  std::string best_by_;
  MetricKind kind_;  ///< that it means; without a name where there is none
  std::size_t patience_;
  std::size_t since_best_ = 0;
  Metrics metrics_;
};

}  // namespace mylos::train
