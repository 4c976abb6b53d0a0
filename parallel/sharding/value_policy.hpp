#pragma once

#include "parallel/sharding/unit_exchanges.hpp"

#include <cstddef>
#include <memory>
#include <span>

/// When a strategy gathers the values of units. A policy decides and holds no memory: a run carries out its decisions
/// on arrays (unit_arrays.hpp), and a plan records them.
namespace mylos::parallel {

/// A unit, and the memory that it takes: its own, or one of a few that units take in turn.
struct PlacedUnit {
  std::size_t unit = 0;
  std::size_t place = 0;
};

/// Carries out the decisions of a policy of values. If values are sharded, a unit's rest goes with it.
class ValueWork {
 public:
  virtual ~ValueWork() = default;
  /// Begins to gather units, all in one call of Communicator. An exchange of the same memory must have ended.
  virtual void gather(std::span<const PlacedUnit> units) = 0;
  /// Returns when the unit's values are complete; the model can read them until the unit gives way.
  virtual void complete(PlacedUnit unit) = 0;
  /// Returns when the unit is complete, and takes its values from the model: the memory is needed for another unit.
  virtual void give_way(PlacedUnit unit) = 0;
  /// Ends an exchange of outdated values, and takes them from the model.
  virtual void discard(PlacedUnit unit) = 0;
};

/// Every rank must acquire and release the same units in the same order.
class ValuePolicy {
 public:
  virtual ~ValuePolicy() = default;
  /// Called when the master weights of units have changed.
  virtual void sync(ChangedUnits changed) = 0;
  /// Returns when the unit, and the units whose tensors it reads, are complete.
  virtual void acquire(std::size_t unit) = 0;
  virtual void release(std::size_t unit) = 0;
};

/// Returns the policy of a mode. `least_bytes`: see Communicator::least_gather_bytes. The arguments must outlive it.
std::unique_ptr<ValuePolicy> make_value_policy(const UnitExchanges& exchanges, ValueWork& work,
                                               std::size_t least_bytes);

}  // namespace mylos::parallel
