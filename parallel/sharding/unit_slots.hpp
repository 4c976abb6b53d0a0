#pragma once

#include "core/parameters.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

namespace mylos::parallel {

/// Chooses which units of the network are complete at a time: the slot of memory that a unit takes, with its rest, and
/// the unit that is expected next. Holds no memory and exchanges nothing, so that plans make the choices of a run.
class UnitSlots {
 public:
  /// `table` must outlive this object.
  explicit UnitSlots(const ParameterTable& table);

  /// The slots of a unit and of the units whose tensors it reads.
  struct Choice {
    std::vector<std::size_t> held;
    std::vector<std::size_t> to_gather;  ///< those of `held` whose units were in no slot
  };
  /// Called with a slot before its unit gives way to another one.
  using Discard = std::function<void(std::size_t slot)>;

  std::size_t size() const { return slots_.size(); }
  std::size_t unit_in(std::size_t slot) const { return slots_[slot].unit; }

  /// Holds the units until they are released. Errors: std::invalid_argument if the held units leave too few slots.
  Choice acquire(std::size_t unit, const Discard& discard);
  /// Chooses slots for the unit that followed the last two acquired units the last time, as far as slots are free. Does
  /// not hold them.
  Choice prefetch(const Discard& discard);
  /// Errors: std::invalid_argument if the unit was not acquired.
  void release(std::size_t unit);
  /// Empties the slots of units that have changed. Errors: std::invalid_argument if a unit is held.
  void clear(const Discard& discard, ChangedUnits changed);

 private:
  static constexpr std::size_t no_unit = static_cast<std::size_t>(-1);

  struct Slot {
    std::size_t unit = no_unit;
    std::size_t users = 0;  ///< acquired and not yet released
    std::size_t used = 0;   ///< time of the last acquisition or prefetch, by clock_
  };

  std::vector<std::size_t> needed_by(std::size_t unit) const;
  Slot* find(std::size_t unit);
  Slot* take(std::size_t unit, const Discard& discard);
  Choice hold(std::size_t unit, const Discard& discard);

  const ParameterTable& table_;
  std::vector<Slot> slots_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> followed_;  ///< (before, unit) -> next unit
  std::size_t before_ = no_unit, last_ = no_unit;                        ///< the last two acquired units
  std::size_t clock_ = 0;
};

}  // namespace mylos::parallel
