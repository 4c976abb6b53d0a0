#pragma once

#include "train/engine/task.hpp"

#include <cstddef>

namespace mylos::train {

/// The part of a run that plans read: the model, the samples of its steps, and the requirements of an evaluation. Holds
/// references to the model and the samples, which must outlive it.
struct Workload {
  /// A run without evaluation.
  Workload(const nn::Model& trained, const SampleStream& stream) : model(trained), samples(stream) {}
  /// The workload of a task. Implicit, so that plans accept a task.
  Workload(const Task& task) : Workload(task.model(), task) {
    if (const Evaluation* scored = task.evaluation()) {
      evaluation = scored->largest_batch();
      kept_bytes = scored->kept_bytes();
    }
  }

  const nn::Model& model;
  const SampleStream& samples;
  BatchShape evaluation;       ///< largest batch of an evaluation; no samples if there is no evaluation
  std::size_t kept_bytes = 0;  ///< most bytes that scoring needs on the first rank
};

}  // namespace mylos::train
