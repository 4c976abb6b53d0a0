#include "parallel/sharding/parameter_gatherer.hpp"

#include "core/base/error.hpp"
#include "core/element_type.hpp"
#include "core/kernels/activation.hpp"
#include "parallel/sharding/sharding_strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mylos::parallel {

void round_master_weights(const ExecutionSpace& space, const Vector<float>& master, Precision precision,
                          const Vector<std::byte>& rounded) {
  with_type(precision, [&]<class T>(T) {
    convert<float, T>(space, master, Vector<T>(reinterpret_cast<T*>(rounded.data()), master.size()));
  });
}

ParameterGatherer::ParameterGatherer(Communicator& ranks, ParameterStore& store,
                                     std::vector<Vector<float>> master_weights)
    : ranks_(ranks), store_(store), master_weights_(std::move(master_weights)), slots_(units_at_once(store.table())) {
  const std::size_t element = bytes_of(store.precision());
  for (Slot& slot : slots_) {
    slot.memory = uninitialized<std::byte>("mylos::gathered_unit", store.largest_capacity() * element);
  }
}

ParameterGatherer::~ParameterGatherer() {
  for (const Slot& slot : slots_) slot.gathered.wait_for_its_end();
}

void ParameterGatherer::invalidate() {
  for (Slot& slot : slots_) {
    require(slot.users == 0, "gathered units: values change while they are in use");
    if (slot.unit == nobody) continue;
    slot.gathered.wait_for_its_end();  // it gathers outdated values
    store_.give_values(slot.unit, {});
    slot.unit = nobody;
  }
}

std::vector<std::size_t> ParameterGatherer::needed_by(std::size_t unit) const {
  std::vector<std::size_t> needed = store_.table().units()[unit].borrowed;
  needed.push_back(unit);
  return needed;
}

ParameterGatherer::Slot* ParameterGatherer::find(std::size_t unit) {
  const auto found = std::ranges::find(slots_, unit, &Slot::unit);
  return found == slots_.end() ? nullptr : &*found;
}

Vector<std::byte> ParameterGatherer::own_slice(const ExecutionSpace& space, std::size_t unit,
                                               const Vector<std::byte>& whole) const {
  const Vector<float>& master = master_weights_[unit];
  if (store_.precision() == Precision::float32) {
    return {reinterpret_cast<std::byte*>(master.data()), master.size() * sizeof(float)};
  }
  const std::size_t bytes = whole.size() / ranks_.size();
  const Vector<std::byte> mine = slice(whole, ranks_.rank() * bytes, (ranks_.rank() + 1) * bytes);
  round_master_weights(space, master, store_.precision(), mine);
  return mine;
}

/// Gives a unit the least recently used slot without users. Returns null if there is none.
ParameterGatherer::Slot* ParameterGatherer::take_slot(const ExecutionSpace& space, std::size_t unit) {
  Slot* chosen = nullptr;
  for (Slot& slot : slots_) {
    if (slot.users == 0 && (chosen == nullptr || slot.used < chosen->used)) chosen = &slot;
  }
  if (chosen == nullptr) return nullptr;
  if (chosen->unit != nobody) {
    // It may be a wrong prediction that was never read. wait_for_its_end would lose the results of units that were
    // gathered together with it.
    chosen->gathered.wait(space);
    store_.give_values(chosen->unit, {});
  }
  chosen->unit = unit;
  return chosen;
}

/// Starts to gather the units of these slots.
void ParameterGatherer::gather(const ExecutionSpace& space, std::span<Slot* const> slots) {
  if (slots.empty()) return;
  std::vector<NamedParts> arrays;
  for (const Slot* const slot : slots) {
    const Vector<std::byte> whole = slice(slot->memory, 0, store_.capacity(slot->unit) * bytes_of(store_.precision()));
    arrays.push_back({buffer_of(own_slice(space, slot->unit, whole)), buffer_of(whole),
                      fmt::format("gather {}", store_.table().units()[slot->unit].name)});
  }
  const Event gathered = ranks_.all_gather_coalesced(space, arrays);
  for (Slot* const slot : slots) slot->gathered = gathered;
}

/// Marks the unit, and the units whose tensors it reads, as used. Those that are in no slot are gathered together, as
/// far as there is free memory. Returns the slots of the units.
std::vector<ParameterGatherer::Slot*> ParameterGatherer::hold(const ExecutionSpace& space, std::size_t unit) {
  std::vector<Slot*> held, gathered;
  const auto use = [&](Slot* slot) {
    ++slot->users;
    slot->used = ++clock_;
    held.push_back(slot);
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
    Slot* const slot = take_slot(space, needed);
    if (slot == nullptr) continue;
    use(slot);
    gathered.push_back(slot);
  }
  gather(space, gathered);
  return held;
}

void ParameterGatherer::acquire(const ExecutionSpace& space, std::size_t unit) {
  const std::vector<std::size_t> needed = needed_by(unit);
  const std::vector<Slot*> held = hold(space, unit);
  require(held.size() == needed.size(), fmt::format("gathered units: {} is acquired while {} others are in use",
                                                    store_.table().units()[unit].name, slots_.size()));
  if (last_ != nobody) followed_[{before_, last_}] = unit;
  before_ = last_;
  last_ = unit;
  prefetch(space);
  for (const Slot* const slot : held) {
    slot->gathered.wait(space);
    const std::size_t bytes = store_.capacity(slot->unit) * bytes_of(store_.precision());
    store_.give_values(slot->unit, slice(slot->memory, 0, bytes));
  }
}

void ParameterGatherer::prefetch(const ExecutionSpace& space) {
  const auto known = followed_.find({before_, last_});
  const std::size_t next = known != followed_.end() ? known->second : last_ + 1;
  if (next >= store_.table().units().size()) return;
  for (Slot* const slot : hold(space, next)) --slot->users;
}

void ParameterGatherer::release(std::size_t unit) {
  for (const std::size_t needed : needed_by(unit)) {
    Slot* const slot = find(needed);
    require(slot != nullptr && slot->users > 0,
            fmt::format("gathered units: {} is released, but was not acquired", store_.table().units()[needed].name));
    --slot->users;
  }
}

}  // namespace mylos::parallel
