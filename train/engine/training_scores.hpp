#pragma once

#include "parallel/communicator/communicator.hpp"
#include "train/engine/metrics.hpp"
#include "train/engine/task.hpp"
#include "train/engine/train_config.hpp"

#include <cstdint>
#include <vector>

/// What training itself tells about the model, without an evaluation: the mean loss of the steps and, where the task
/// counts them, the labels that the model predicted before each update, with dropout.
namespace mylos::train {

/// Sums over the steps since the last evaluation.
struct TrainingScores {
  double losses = 0.0;  ///< of steps
  std::uint64_t steps = 0;
  std::uint64_t predictions = 0;  ///< of all ranks
  std::uint64_t hits = 0;         ///< predictions that are right: those of this rank, and of an earlier start on rank 0
};

/// Returns whether the training loss selects the best model: it was chosen, or nothing else tells.
bool judges_training_loss(const BestConfig& best, const Task& task);
/// Returns whether models are judged during the run, by an evaluation or by the training loss.
bool judges_models(const BestConfig& best, const Task& task);

/// Returns the metrics that an evaluation of the run gives: those of the task, then those of training.
std::vector<MetricKind> metric_kinds(const BestConfig& best, const Task& task);

/// Returns the metrics of the steps so far; empty if there are none. Collective.
Metrics training_metrics(parallel::Communicator& ranks, const Task& task, const TrainingScores& scores);

}  // namespace mylos::train
