#include "parallel/sharding/unit_slots.hpp"

#include "core/base/error.hpp"
#include "parallel/sharding/unit_exchanges.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::parallel {

UnitSlots::UnitSlots(const ParameterTable& table) : table_(table), slots_(units_at_once(table)) {}

/// Returns the units whose tensors the unit reads, and then the unit.
std::vector<std::size_t> UnitSlots::needed_by(std::size_t unit) const {
  std::vector<std::size_t> needed = table_.units()[unit].borrowed;
  needed.push_back(unit);
  return needed;
}

UnitSlots::Slot* UnitSlots::find(std::size_t unit) {
  const auto found = std::ranges::find(slots_, unit, &Slot::unit);
  return found == slots_.end() ? nullptr : &*found;
}

/// Gives a unit the least recently used slot without users. Returns null if there is none.
UnitSlots::Slot* UnitSlots::take(std::size_t unit, const Discard& discard) {
  Slot* chosen = nullptr;
  for (Slot& slot : slots_) {
    if (slot.users == 0 && (chosen == nullptr || slot.used < chosen->used)) chosen = &slot;
  }
  if (chosen == nullptr) return nullptr;
  if (chosen->unit != no_unit) discard(static_cast<std::size_t>(chosen - slots_.data()));
  chosen->unit = unit;
  return chosen;
}

/// Marks the unit, and the units whose tensors it reads, as used, as far as there are slots.
UnitSlots::Choice UnitSlots::hold(std::size_t unit, const Discard& discard) {
  Choice choice;
  const auto use = [&](Slot* slot) {
    ++slot->users;
    slot->used = ++clock_;
    choice.held.push_back(static_cast<std::size_t>(slot - slots_.data()));
  };
  std::vector<std::size_t> missing;
  for (const std::size_t needed : needed_by(unit)) {
    if (Slot* const slot = find(needed)) {
      use(slot);
    } else {
      missing.push_back(needed);
    }
  }
  for (const std::size_t needed : missing) {  // after all others are in use, so that it takes the slot of none
    Slot* const slot = take(needed, discard);
    if (slot == nullptr) continue;
    use(slot);
    choice.to_gather.push_back(choice.held.back());
  }
  return choice;
}

UnitSlots::Choice UnitSlots::acquire(std::size_t unit, const Discard& discard) {
  Choice choice = hold(unit, discard);
  require(choice.held.size() == needed_by(unit).size(),
          fmt::format("gathered units: {} is acquired while {} others are in use", table_.units()[unit].name,
                      slots_.size()));
  if (last_ != no_unit) followed_[{before_, last_}] = unit;
  before_ = last_;
  last_ = unit;
  return choice;
}

UnitSlots::Choice UnitSlots::prefetch(const Discard& discard) {
  const auto known = followed_.find({before_, last_});
  const std::size_t next = known != followed_.end() ? known->second : last_ + 1;
  if (next >= table_.network_units()) return {};
  Choice choice = hold(next, discard);
  for (const std::size_t slot : choice.held) --slots_[slot].users;
  return choice;
}

void UnitSlots::release(std::size_t unit) {
  for (const std::size_t needed : needed_by(unit)) {
    Slot* const slot = find(needed);
    require(slot != nullptr && slot->users > 0,
            fmt::format("gathered units: {} is released, but was not acquired", table_.units()[needed].name));
    --slot->users;
  }
}

void UnitSlots::clear(const Discard& discard, ChangedUnits changed) {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    require(slots_[slot].users == 0, "gathered units: values change while they are in use");
    if (slots_[slot].unit == no_unit) continue;
    if (changed == ChangedUnits::trained && !table_.units()[slots_[slot].unit].trained) continue;
    discard(slot);
    slots_[slot].unit = no_unit;
  }
}

}  // namespace mylos::parallel
