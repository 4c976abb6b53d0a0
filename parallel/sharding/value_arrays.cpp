#include "parallel/sharding/value_arrays.hpp"

#include "core/element_type.hpp"
#include "core/kernels/activation.hpp"

#include <fmt/format.h>

#include <utility>

namespace mylos::parallel {

ValueArrays::ValueArrays(const UnitExchanges& exchanges, Communicator& ranks, ParameterStore& store,
                         const std::vector<ParameterSlice>& slices)
    : exchanges_(exchanges),
      ranks_(ranks),
      store_(store),
      slices_(slices),
      owned_(store.layout().owns_values),
      places_(exchanges.value_places()) {
  const std::size_t bytes = store.largest_capacity() * bytes_of(store.precision());
  for (std::size_t i = 0; !owned_ && i < places_.size(); ++i) {
    places_[i].memory = uninitialized<std::byte>("mylos::gathered_unit", bytes);
  }
}

ValueArrays::~ValueArrays() {
  for (const Place& place : places_) place.gathered.wait_for_its_end();
}

/// Returns the unit and its rest, one after the other in the memory of its place.
std::vector<ValueArrays::Part> ValueArrays::parts(PlacedUnit placed) const {
  if (owned_) return {{placed.unit, store_.value_memory(placed.unit)}};
  std::vector<Part> parts;
  std::size_t begin = 0;
  for (const std::size_t unit : exchanges_.gathered_with(placed.unit)) {
    const std::size_t end = begin + exchanges_.value_bytes(unit);
    parts.push_back({unit, slice(places_[placed.place].memory, std::exchange(begin, end), end)});
  }
  return parts;
}

/// Returns this rank's slice in the store's precision: float master weights, or their rounded copy in its part of
/// `part.values`; of a unit without master weights, its values.
std::byte* ValueArrays::own_slice(const Part& part) {
  const ParameterSlice& mine = slices_[part.unit];
  if (store_.precision() == Precision::float32) return reinterpret_cast<std::byte*>(mine.master.data());
  if (!exchanges_.has_master(part.unit)) return mine.rounded->values.data();
  std::byte* const values = part.values.data() + ranks_.rank() * exchanges_.gather(part.unit).part;
  if (mine.rounded != nullptr && std::exchange(mine.rounded->is_current, false)) return values;
  with_type(store_.precision(), [&]<class T>(T) {
    convert<float, T>(space_, mine.master, Vector<T>(reinterpret_cast<T*>(values), mine.master.size()));
  });
  return values;
}

void ValueArrays::gather(std::span<const PlacedUnit> units) {
  std::vector<NamedParts> arrays;
  for (const PlacedUnit& placed : units) {
    for (const Part& part : parts(placed)) {
      const CollectiveCall call = exchanges_.gather(part.unit);
      arrays.push_back({{own_slice(part), call.part, call.type},
                        {part.values.data(), call.count, call.type},
                        fmt::format("{} {}", owned_ ? "values of" : "gather", store_.table().units()[part.unit].name)});
    }
  }
  const Event gathered = ranks_.all_gather_coalesced(space_, arrays);
  for (const PlacedUnit& placed : units) places_[placed.place].gathered = gathered;
}

void ValueArrays::complete(PlacedUnit placed) {
  places_[placed.place].gathered.wait(space_);
  if (owned_) return;
  for (const Part& part : parts(placed)) store_.give_values(part.unit, part.values);
}

void ValueArrays::give_way(PlacedUnit placed) {
  places_[placed.place].gathered.wait(space_);
  take_from_model(placed);
}

void ValueArrays::discard(PlacedUnit placed) {
  places_[placed.place].gathered.discard(space_);
  take_from_model(placed);
}

void ValueArrays::take_from_model(PlacedUnit placed) {
  if (owned_) return;
  for (const std::size_t unit : exchanges_.gathered_with(placed.unit)) store_.give_values(unit, {});
}

}  // namespace mylos::parallel
