#pragma once

#include <cstddef>

/// The only interface through which models interact with parallelism.
namespace mylos {

/// Hooks that a model calls before it uses a unit and when it has finished with it. Sharding strategies gather,
/// prefetch and reduce in them. Calls follow the order of the pass and come from one thread.
class UnitHooks {
 public:
  virtual ~UnitHooks() = default;

  /// Begins reading the unit's values. They are complete when this returns, or when the stream reaches this point.
  virtual void acquire(std::size_t unit) = 0;
  /// Ends reading the unit's values in this direction of the pass.
  virtual void release(std::size_t unit) = 0;
  /// Signals that the unit's gradients of this micro-batch are complete. A unit whose tensors serve several units comes
  /// first in the forward pass, so its gradients complete last in the backward pass.
  virtual void gradients_ready(std::size_t unit) = 0;
};

}  // namespace mylos
