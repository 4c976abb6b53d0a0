#include "parallel/sharding/gathered_units.hpp"

#include "core/base/error.hpp"
#include "core/element_type.hpp"
#include "core/kernels/activation.hpp"
#include "parallel/sharding/parameter_mode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace mylos::parallel {

void round_master(const ExecutionSpace& space, const Vector<float>& master, Precision precision,
                  const Vector<std::byte>& rounded) {
  with_type(precision, [&]<class T>(T) {
    convert<float, T>(space, master, Vector<T>(reinterpret_cast<T*>(rounded.data()), master.size()));
  });
}

GatheredUnits::GatheredUnits(Communicator& ranks, ParameterStore& store, std::vector<Vector<float>> masters)
    : ranks_(ranks), store_(store), masters_(std::move(masters)), places_(units_at_once(store.table())) {
  const std::size_t element = bytes_of(store.precision());
  for (Place& place : places_) {
    place.memory = uninitialized<std::byte>("mylos::gathered_unit", store.largest_capacity() * element);
  }
}

GatheredUnits::~GatheredUnits() {
  for (const Place& place : places_) place.gathered.wait_for_its_end();
}

void GatheredUnits::invalidate() {
  for (Place& place : places_) {
    require(place.users == 0, "gathered units: values change while they are in use");
    if (place.unit == nobody) continue;
    place.gathered.wait_for_its_end();  // what it gathers is old
    store_.give_values(place.unit, {});
    place.unit = nobody;
  }
}

std::vector<std::size_t> GatheredUnits::needed_by(std::size_t unit) const {
  std::vector<std::size_t> needed = store_.table().units()[unit].borrowed;
  needed.push_back(unit);
  return needed;
}

GatheredUnits::Place* GatheredUnits::find(std::size_t unit) {
  const auto found = std::ranges::find(places_, unit, &Place::unit);
  return found == places_.end() ? nullptr : &*found;
}

Vector<std::byte> GatheredUnits::own_slice(const ExecutionSpace& space, std::size_t unit,
                                           const Vector<std::byte>& whole) const {
  const Vector<float>& master = masters_[unit];
  if (store_.precision() == Precision::float32) {
    return {reinterpret_cast<std::byte*>(master.data()), master.size() * sizeof(float)};
  }
  const std::size_t bytes = whole.size() / ranks_.size();
  const Vector<std::byte> mine = slice(whole, ranks_.rank() * bytes, (ranks_.rank() + 1) * bytes);
  round_master(space, master, store_.precision(), mine);
  return mine;
}

/// Into the memory that nobody uses and was used longest ago.
GatheredUnits::Place& GatheredUnits::start_gathering(const ExecutionSpace& space, std::size_t unit) {
  Place* chosen = nullptr;
  for (Place& place : places_) {
    if (place.users == 0 && (chosen == nullptr || place.used < chosen->used)) chosen = &place;
  }
  require(chosen != nullptr, fmt::format("gathered units: {} is acquired while {} others are in use",
                                         store_.table().units()[unit].name, places_.size()));
  if (chosen->unit != nobody) {
    chosen->gathered.wait_for_its_end();  // never read: the guess was wrong
    store_.give_values(chosen->unit, {});
  }
  chosen->unit = unit;
  chosen->used = ++clock_;
  const Vector<std::byte> whole = slice(chosen->memory, 0, store_.capacity(unit) * bytes_of(store_.precision()));
  chosen->gathered = ranks_.all_gather(space, buffer_of(own_slice(space, unit, whole)), buffer_of(whole),
                                       fmt::format("gather {}", store_.table().units()[unit].name));
  return *chosen;
}

void GatheredUnits::acquire(const ExecutionSpace& space, std::size_t unit) {
  for (const std::size_t needed : needed_by(unit)) {
    Place* place = find(needed);
    if (place == nullptr) place = &start_gathering(space, needed);
    ++place->users;
    place->used = ++clock_;
  }
  if (last_ != nobody) followed_[{before_, last_}] = unit;
  before_ = last_;
  last_ = unit;
  prefetch(space);
  for (const std::size_t needed : needed_by(unit)) {
    Place& place = *find(needed);
    place.gathered.wait(space);
    const std::size_t bytes = store_.capacity(needed) * bytes_of(store_.precision());
    store_.give_values(needed, slice(place.memory, 0, bytes));
  }
}

void GatheredUnits::prefetch(const ExecutionSpace& space) {
  const auto known = followed_.find({before_, last_});
  const std::size_t next = known != followed_.end() ? known->second : last_ + 1;
  if (next >= store_.table().units().size()) return;
  for (const std::size_t needed : needed_by(next)) {
    const bool has_room = std::ranges::any_of(places_, [](const Place& place) { return place.users == 0; });
    if (Place* place = find(needed)) {
      place->used = ++clock_;
    } else if (has_room) {
      start_gathering(space, needed);
    }
  }
}

void GatheredUnits::release(std::size_t unit) {
  for (const std::size_t needed : needed_by(unit)) {
    Place* const place = find(needed);
    require(place != nullptr && place->users > 0,
            fmt::format("gathered units: {} is released, but was not acquired", store_.table().units()[needed].name));
    --place->users;
  }
}

}  // namespace mylos::parallel
