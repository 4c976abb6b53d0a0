#pragma once

#include "core/kernels/updates/optimizer.hpp"

namespace mylos {

/// Polyak's heavy ball as in PyTorch: d = g + weight_decay w; b = momentum b + d; w -= learning_rate b. Nesterov
/// momentum (Sutskever et al. 2013, in PyTorch's form): w -= learning_rate (d + momentum b).
struct SgdSettings {
  float learning_rate = 0.0f;
  float momentum = 0.9f, weight_decay = 0.0f;
  bool nesterov = false;
};
void sgd_update(const ExecutionSpace& space, const Candidates<SgdSettings>& settings,
                const ConstVector<UpdateControl>& control, const ConstVector<float>& gradient,
                const Vector<float>& value, const Vector<float>& momentum, const RoundedValues& rounded = {});

/// Undoes the last update, which computed this momentum, up to rounding. Errors: std::invalid_argument with Nesterov
/// momentum. Its updates contain the gradient, which cannot be computed from the momentum alone.
void sgd_revert(const ExecutionSpace& space, const SgdSettings& settings, const ConstVector<float>& momentum,
                const Vector<float>& value);

}  // namespace mylos
