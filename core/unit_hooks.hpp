#pragma once

#include <cstddef>

/// The only thing models know of parallelism.
namespace mylos {

/// Told by a model, unit by unit, what it is about to use and what it has finished; a parallel mode gathers, prefetches
/// and reduces on it. Calls come in the order of the pass, from one thread.
class UnitHooks {
 public:
  virtual ~UnitHooks() = default;

  /// The unit's values are read from here on: they are complete when this returns (or when the stream gets there).
  virtual void acquire(std::size_t unit) = 0;
  /// The unit's values are not read any more in this direction of the pass.
  virtual void release(std::size_t unit) = 0;
  /// The unit's gradients of this micro-batch are complete. A unit whose rows serve several units comes first in the
  /// forward pass, so that in the backward pass it is told last.
  virtual void gradients_ready(std::size_t unit) = 0;
};

}  // namespace mylos
