#pragma once

#include "train/engine/task.hpp"
#include "train/engine/train_config.hpp"

#include <memory>

/// Evaluation without training: parameters for inference only, one layer's activations.
namespace mylos::train {

class Evaluator {
 public:
  /// Takes memory and loads the task's parameters. `task` outlives it.
  /// Errors: std::runtime_error naming a tensor that the task has no values for: nothing is scored with random weights.
  Evaluator(Task& task, Precision precision, const GemmConfig& gemm);
  /// The same for batches up to `largest`, whatever the task has to evaluate.
  Evaluator(Task& task, Precision precision, const GemmConfig& gemm, const BatchShape& largest);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// Predicts and scores what the task has to evaluate.
  Metrics evaluate();
  /// Predicts the batches of `evaluation`, which are no larger than those this was made for.
  void predict(Evaluation& evaluation);
  /// Seconds that the last predictions took: not what scoring them did.
  double prediction_seconds() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mylos::train
