#pragma once

#include "core/unit_hooks.hpp"

namespace mylos::parallel {

/// Calls the hooks of `units` units in the order in which a model calls them in a training pass over a micro-batch. The
/// last unit stays acquired between the forward and the backward pass. Calls compute_gradients(unit) where the model
/// computes the gradients of a unit.
template <class ComputeGradients>
void pass_over_units(UnitHooks& hooks, std::size_t units, const ComputeGradients& compute_gradients) {
  for (std::size_t unit = 0; unit < units; ++unit) {
    hooks.acquire(unit);
    if (unit + 1 < units) hooks.release(unit);
  }
  for (std::size_t unit = units; unit-- > 0;) {
    if (unit + 1 < units) hooks.acquire(unit);
    compute_gradients(unit);
    hooks.release(unit);
    hooks.gradients_ready(unit);
  }
}

}  // namespace mylos::parallel
