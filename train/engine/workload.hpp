#pragma once

#include "train/engine/task.hpp"

#include <cstddef>

namespace mylos::train {

/// The part of a run that a plan reads: the model, the samples of its steps, and the needs of an evaluation. Holds
/// references: the model and the samples outlive it.
struct Workload {
  /// A run that evaluates nothing.
  Workload(const nn::Model& trained, const SampleStream& stream) : model(trained), samples(stream) {}
  /// A task's; implicit, because a plan of a task is a plan of this.
  Workload(const Task& task) : Workload(task.model(), task) {
    if (const Evaluation* scored = task.evaluation()) {
      evaluation = scored->largest_batch();
      kept_bytes = scored->kept_bytes();
    }
  }

  const nn::Model& model;
  const SampleStream& samples;
  BatchShape evaluation;       ///< the largest batch that is predicted; without samples where nothing is evaluated
  std::size_t kept_bytes = 0;  ///< that scoring takes at the most, on the first rank
};

}  // namespace mylos::train
