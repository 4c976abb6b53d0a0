#pragma once

#include "train/engine/trainer.hpp"

#include <vector>

namespace mylos::small_models {

/// Returns the master weights of all parameters, in table order.
inline std::vector<float> trained_weights(const train::Task& task, const train::Trainer& trainer) {
  std::vector<float> weights;
  for (const ParameterTensor& tensor : task.model().table().tensors()) {
    std::vector<float> values(tensor.size);
    trainer.read_tensor(tensor.name, values);
    weights.insert(weights.end(), values.begin(), values.end());
  }
  return weights;
}

}  // namespace mylos::small_models
