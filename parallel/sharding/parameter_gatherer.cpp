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

/// Gathers into the least recently used slot without users.
ParameterGatherer::Slot& ParameterGatherer::start_gathering(const ExecutionSpace& space, std::size_t unit) {
  Slot* chosen = nullptr;
  for (Slot& slot : slots_) {
    if (slot.users == 0 && (chosen == nullptr || slot.used < chosen->used)) chosen = &slot;
  }
  require(chosen != nullptr, fmt::format("gathered units: {} is acquired while {} others are in use",
                                         store_.table().units()[unit].name, slots_.size()));
  if (chosen->unit != nobody) {
    chosen->gathered.wait_for_its_end();  // a wrong prediction that was never read
    store_.give_values(chosen->unit, {});
  }
  chosen->unit = unit;
  chosen->used = ++clock_;
  const Vector<std::byte> whole = slice(chosen->memory, 0, store_.capacity(unit) * bytes_of(store_.precision()));
  chosen->gathered = ranks_.all_gather(space, buffer_of(own_slice(space, unit, whole)), buffer_of(whole),
                                       fmt::format("gather {}", store_.table().units()[unit].name));
  return *chosen;
}

void ParameterGatherer::acquire(const ExecutionSpace& space, std::size_t unit) {
  for (const std::size_t needed : needed_by(unit)) {
    Slot* slot = find(needed);
    if (slot == nullptr) slot = &start_gathering(space, needed);
    ++slot->users;
    slot->used = ++clock_;
  }
  if (last_ != nobody) followed_[{before_, last_}] = unit;
  before_ = last_;
  last_ = unit;
  prefetch(space);
  for (const std::size_t needed : needed_by(unit)) {
    Slot& slot = *find(needed);
    slot.gathered.wait(space);
    const std::size_t bytes = store_.capacity(needed) * bytes_of(store_.precision());
    store_.give_values(needed, slice(slot.memory, 0, bytes));
  }
}

void ParameterGatherer::prefetch(const ExecutionSpace& space) {
  const auto known = followed_.find({before_, last_});
  const std::size_t next = known != followed_.end() ? known->second : last_ + 1;
  if (next >= store_.table().units().size()) return;
  for (const std::size_t needed : needed_by(next)) {
    const bool has_room = std::ranges::any_of(slots_, [](const Slot& slot) { return slot.users == 0; });
    if (Slot* slot = find(needed)) {
      slot->used = ++clock_;
    } else if (has_room) {
      start_gathering(space, needed);
    }
  }
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
