#pragma once

#include "train/engine/loop/training_step.hpp"

#include <cstddef>

namespace mylos::tests {

/// Runs a step that follows `index` updates, takes its results, and updates the model's values.
inline train::StepResult single_step(train::TrainingStep& step, const ExecutionSpace& space, std::size_t index,
                                     double learning_rate) {
  const nn::UpdateSettings update{.step = index, .learning_rate = static_cast<float>(learning_rate)};
  step.launch(space, {.step = index, .update = update});
  const train::StepResult result = step.take(1.0);
  step.sync_parameters(space);
  return result;
}

}  // namespace mylos::tests
