#pragma once

#include "core/kernels/updates/optimizer.hpp"

namespace mylos {

/// Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms": w -= learning_rate (sign(beta1 m + (1 - beta1) g)
/// + weight_decay w), then m = beta2 m + (1 - beta2) g. The sign of 0 is 0.
struct LionSettings {
  float learning_rate = 0.0f;
  double beta1 = 0.9, beta2 = 0.99;  ///< double because 1 - 0.99 in float has a relative error of 1e-6
  float weight_decay = 0.0f;
};
void lion_update(const ExecutionSpace& space, const Candidates<LionSettings>& settings,
                 const ConstVector<UpdateControl>& control, const ConstVector<float>& gradient,
                 const Vector<float>& value, const Vector<float>& moment, const RoundedValues& rounded = {});

}  // namespace mylos
