#include "train/engine/training_scores.hpp"

#include "parallel/communicator/agreement.hpp"

namespace mylos::train {

bool judges_training_loss(const BestConfig& best, const Task& task) {
  const bool selects = best.patience > 0 || best.keep > 1;
  return best.by == training_loss_name || (task.evaluation() == nullptr && selects);
}

bool judges_models(const BestConfig& best, const Task& task) {
  return task.evaluation() != nullptr || judges_training_loss(best, task);
}

std::vector<MetricKind> metric_kinds(const BestConfig& best, const Task& task) {
  std::vector<MetricKind> kinds;
  if (!judges_models(best, task)) return kinds;
  if (const Evaluation* const evaluation = task.evaluation()) {
    kinds.assign(evaluation->kinds().begin(), evaluation->kinds().end());
  }
  kinds.push_back({.name = training_loss_name, .title = "Training loss", .larger_is_better = false});
  if (const auto score = task.training_score()) kinds.push_back(*score);
  return kinds;
}

Metrics training_metrics(parallel::Communicator& ranks, const Task& task, const TrainingScores& scores) {
  if (scores.steps == 0) return {};
  Metrics metrics = {{training_loss_name, scores.losses / static_cast<double>(scores.steps)}};
  if (const auto kind = task.training_score()) {
    const double hits = parallel::sum(ranks, static_cast<double>(scores.hits)), whole = kind->unit == "%" ? 100.0 : 1.0;
    metrics.emplace_back(kind->name, whole * hits / static_cast<double>(scores.predictions));
  }
  return metrics;
}

}  // namespace mylos::train
