#pragma once

#include "core/kernels/updates/optimizer.hpp"

namespace mylos {

/// Loshchilov, Hutter 2019, with bias correction: w -= learning_rate (m^ / (sqrt(v^) + epsilon) + weight_decay w).
struct AdamWSettings {
  float learning_rate = 0.0f;
  double beta1 = 0.9, beta2 = 0.999;  ///< double because 1 - 0.999 in float has a relative error of 1e-5
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;
  double bias_correction1 = 1.0, bias_correction2 = 1.0;  ///< 1 - beta^step
};
void adamw_update(const ExecutionSpace& space, const Candidates<AdamWSettings>& settings,
                  const ConstVector<UpdateControl>& control, const ConstVector<float>& gradient,
                  const Vector<float>& value, const Vector<float>& first_moment, const Vector<float>& second_moment,
                  const RoundedValues& rounded = {});

/// Undoes the last update, which computed these moments. The error is at most the rounding error of the larger of the
/// weights before and after the update. A weight that decay set to zero (learning_rate * weight_decay >= 1) is not
/// restored.
void adamw_revert(const ExecutionSpace& space, const AdamWSettings& settings, const ConstVector<float>& first_moment,
                  const ConstVector<float>& second_moment, const Vector<float>& value);

}  // namespace mylos
