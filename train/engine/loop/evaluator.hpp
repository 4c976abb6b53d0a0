#pragma once

#include "train/engine/task.hpp"
#include "train/engine/train_config.hpp"

#include <memory>

/// Evaluation without training: holds parameters for inference only and the activations of one layer.
namespace mylos::train {

class Evaluator {
 public:
  /// Allocates memory and loads the task's parameters. `task` must outlive this object. Errors: std::runtime_error
  /// naming a tensor without values in the task: nothing is scored with random weights.
  Evaluator(Task& task, Precision precision, const GemmConfig& gemm);
  /// Allocates for batches up to `largest` instead of the task's own evaluation batches.
  Evaluator(Task& task, Precision precision, const GemmConfig& gemm, const BatchShape& largest);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// Runs and scores the task's evaluation.
  Metrics evaluate();
  /// Predicts the batches of `evaluation`, which must not exceed the size given at construction.
  void predict(Evaluation& evaluation);
  /// Returns the seconds of the last prediction, without scoring.
  double prediction_seconds() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mylos::train
