#include "train/engine/loop/training_scores.hpp"

#include "parallel/communicator/agreement.hpp"

namespace mylos::train {

bool judges_models(const TrainConfig& config, const Task& task) {
  const BestConfig& best = config.best;
  return task.evaluation() != nullptr || best.by == training_loss_name || best.patience > 0 || best.keep > 1;
}

std::size_t evaluation_interval(const TrainConfig& config, const Task& task) {
  if (config.evaluate_every_epochs > 0) return config.evaluate_every_epochs * task.steps_per_epoch();
  return config.evaluate_every > 0 ? config.evaluate_every : task.steps_per_epoch();
}

std::vector<MetricKind> metric_kinds(const TrainConfig& config, const Task& task) {
  std::vector<MetricKind> kinds;
  if (!judges_models(config, task)) return kinds;
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
