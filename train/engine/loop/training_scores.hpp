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

/// Returns whether models are judged during the run: by an evaluation, or by the training loss if that was chosen, or
/// if a setting wants them judged and nothing else does.
bool judges_models(const TrainConfig& config, const Task& task);
/// Returns the number of steps after which they are judged.
std::size_t evaluation_interval(const TrainConfig& config, const Task& task);

/// Returns the metrics by which they are judged: those of the task, then those of training. Empty if they are not.
std::vector<MetricKind> metric_kinds(const TrainConfig& config, const Task& task);

/// Returns the metrics of the steps so far; empty if there are none. Collective.
Metrics training_metrics(parallel::Communicator& ranks, const Task& task, const TrainingScores& scores);

}  // namespace mylos::train
