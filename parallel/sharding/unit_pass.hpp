#pragma once

#include "core/parameters.hpp"
#include "core/unit_hooks.hpp"

namespace mylos::parallel {

/// Calls the hooks of the units in the order in which a model calls them in a training pass over a micro-batch. The
/// last unit stays acquired between the forward and the backward pass, which ends at the first trained unit. Calls
/// compute_gradients(unit) where the model computes the gradients of a unit, or those of its input.
template <class ComputeGradients>
void pass_over_units(UnitHooks& hooks, const ParameterTable& table, const ComputeGradients& compute_gradients) {
  const std::size_t units = table.network_units();
  for (std::size_t unit = 0; unit < units; ++unit) {
    hooks.acquire(unit);
    if (unit + 1 < units) hooks.release(unit);
  }
  for (std::size_t unit = units; unit-- > table.first_trained_unit();) {
    if (unit + 1 < units) hooks.acquire(unit);
    compute_gradients(unit);
    hooks.release(unit);
    if (table.units()[unit].trained) hooks.gradients_ready(unit);
  }
}

}  // namespace mylos::parallel
