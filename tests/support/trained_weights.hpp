#pragma once

#include "train/engine/loop/trainer.hpp"

#include <vector>

namespace mylos::tests {

/// Returns the master weights of all parameter tensors, and the state tensors, in table order.
inline std::vector<float> trained_weights(const train::Task& task, const train::Trainer& trainer) {
  std::vector<float> weights;
  const ParameterTable& table = task.model().table();
  for (const auto tensors : {table.tensors(), table.state_tensors()}) {
    for (const ParameterTensor& tensor : tensors) {
      std::vector<float> values(tensor.size);
      trainer.read_tensor(tensor.name, values);
      weights.insert(weights.end(), values.begin(), values.end());
    }
  }
  return weights;
}

}  // namespace mylos::tests
