#pragma once

#include "train/engine/trainer.hpp"

#include <vector>

namespace mylos::small_models {

/// The masters of all parameters, in the order of the table.
inline std::vector<float> trained_weights(const train::Task& task, const train::Trainer& trainer) {
  std::vector<float> weights;
  for (const ParameterRow& row : task.model().table().rows()) {
    std::vector<float> values(row.size);
    trainer.read_row(row.name, values);
    weights.insert(weights.end(), values.begin(), values.end());
  }
  return weights;
}

}  // namespace mylos::small_models
