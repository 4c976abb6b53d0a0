#include "parallel/sharding/unit_arrays.hpp"

#include "core/element_type.hpp"
#include "core/kernels/activation.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/trace.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace mylos::parallel {

Communicator& group_of(Mesh& mesh, const CollectiveCall& call) {
  if (call.group == CollectiveCall::all) return mesh.world();
  return call.group == CollectiveCall::shard ? mesh.shard() : mesh.replicate();
}

GradientArrays::GradientArrays(const UnitExchanges& exchanges, Mesh& mesh, ParameterStore& store,
                               const std::vector<ParameterSlice>& slices)
    : exchanges_(exchanges),
      mesh_(mesh),
      store_(store),
      slices_(slices),
      owned_(store.layout().owns_gradients),
      places_(exchanges.gradient_places()),
      slice_sums_(slices.size()),
      has_begun_(slices.size()) {
  const std::size_t largest = store.largest_gradient_capacity();
  const std::string label = owned_ ? "mylos::all_reduced_gradients" : "mylos::sharded_gradients";
  for (Place& place : places_) {
    if (!owned_) place.memory = uninitialized<float>(label, largest);
    if (exchanges.settings.bfloat16_gradients) place.rounded = uninitialized<bfloat16>(label + "::rounded", largest);
  }
  for (std::size_t unit = 0; exchanges.settings.tree_sums && unit < slices.size(); ++unit) {
    const std::size_t size = owned_ ? store.gradient_capacity(unit) : slices[unit].gradient.size();
    tree_sums_.emplace_back(label + "::partial", size, exchanges.settings.micro_batches);
  }
}

GradientArrays::~GradientArrays() {
  for (const Place& place : places_) place.summed.wait_for_its_end();
  for (const SliceSum& sum : slice_sums_) sum.summed.wait_for_its_end();
}

void GradientArrays::begin_step(const ExecutionSpace& space) {
  space_ = space;
  if (!owned_ || tree_sums_.empty()) store_.begin_gradients(space);
  has_begun_.assign(has_begun_.size(), false);
}

void GradientArrays::begin_micro_batch(bool last) {
  is_last_ = last;
  if (owned_ && !tree_sums_.empty()) store_.begin_gradients(space_);
}

void GradientArrays::end_writing(std::size_t unit) {
  // Micro-batches accumulate in whole gradients, unless each is a leaf of a tree.
  if (owned_ && tree_sums_.empty() && !is_last_) return;
  store_.finish_gradients(space_, unit);
  if (!owned_ || tree_sums_.empty()) return;
  tree_sums_[unit].add(space_, store_.gradient_memory(unit), store_.gradient_memory(unit));
}

Vector<float> GradientArrays::memory(PlacedUnit placed) const {
  if (owned_) return store_.gradient_memory(placed.unit);
  return slice(places_[placed.place].memory, 0, store_.capacity(placed.unit));
}

template <class T>
Vector<T> GradientArrays::part_of(std::size_t unit, const Vector<T>& whole) const {
  const std::size_t part = exchanges_.slice_size(unit), rank = mesh_.shard().rank();
  return slice(whole, rank * part, (rank + 1) * part);
}

void GradientArrays::sum(std::span<const std::size_t> units, std::size_t place) {
  Place& at = places_[place];
  at.unit = units.front();
  std::vector<NamedArray> wholes;
  std::vector<NamedParts> parts;
  for (const std::size_t unit : units) {
    const Vector<float> gradients = memory({unit, place});
    void* sent = gradients.data();
    if (at.rounded.extent(0) > 0) {
      const Vector<bfloat16> rounded = slice(at.rounded, 0, gradients.size());
      convert<float, bfloat16>(space_, gradients, rounded);
      sent = rounded.data();
    }
    if (!owned_) store_.take_gradients(unit);
    const CollectiveCall call = exchanges_.sum(unit);
    const Buffer all{sent, call.count, call.type};
    std::string label = fmt::format("gradients of {}", store_.table().units()[unit].name);
    if (call.kind == CollectiveCall::Kind::all_reduce) {
      wholes.push_back({all, std::move(label)});
    } else {
      parts.push_back({{part_of(unit, gradients).data(), call.part, call.sum_type}, all, std::move(label)});
    }
  }
  Communicator& ranks = group_of(mesh_, exchanges_.sum(at.unit));
  at.summed =
      wholes.empty() ? ranks.reduce_scatter_coalesced(space_, parts) : ranks.all_reduce_coalesced(space_, wholes);
}

void GradientArrays::finish_sum(std::size_t place) {
  Place& at = places_[place];
  if (!owned_) return add_to_slice(at);
  std::exchange(at.summed, {}).wait(space_);
  // The sum of a slice is float and already in place.
  if (at.rounded.extent(0) == 0 || shards_optimizer(exchanges_.settings.kind)) return;
  const Vector<float> gradients = store_.gradient_memory(at.unit);
  convert<bfloat16, float>(space_, slice(at.rounded, 0, gradients.size()), gradients);
}

void GradientArrays::add_to_slice(const Place& place) {
  {
    const TraceSpan span(TraceLane::waiting, "gradients of", store_.table().units()[place.unit].name);
    place.summed.wait(space_);
  }
  const Vector<float> sum = part_of(place.unit, place.memory), total = slices_[place.unit].gradient;
  if (!tree_sums_.empty()) {
    tree_sums_[place.unit].add(space_, sum, total);
  } else if (has_begun_[place.unit]) {
    add(space_, sum, total);
  } else {
    Kokkos::deep_copy(space_, total, sum);
  }
  has_begun_[place.unit] = true;
}

void GradientArrays::sum_slices(std::span<const PlacedUnit> units) {
  std::vector<NamedArray> arrays;
  for (const auto& [unit, place] : units) {
    const CollectiveCall call = exchanges_.sum_slice(unit);
    const Vector<float> mine = slices_[unit].gradient;
    void* sent = mine.data();
    if (exchanges_.rounds_slices()) {
      // The whole unit has been exchanged from this memory, which is free until the next one's gradients.
      const Vector<bfloat16> rounded = part_of(unit, places_[place].rounded);
      convert<float, bfloat16>(space_, mine, rounded);
      slice_sums_[unit].rounded = rounded;
      sent = rounded.data();
    }
    arrays.push_back({{sent, call.count, call.type},
                      fmt::format("gradients of {} over all groups", store_.table().units()[unit].name)});
  }
  Communicator& ranks = group_of(mesh_, exchanges_.sum_slice(units.front().unit));
  const Event summed = ranks.all_reduce_coalesced(space_, arrays);
  for (const PlacedUnit& placed : units) slice_sums_[placed.unit].summed = summed;
}

void GradientArrays::finish_slices(std::span<const std::size_t> units) {
  const TraceSpan span(TraceLane::waiting, "sums of", "gradients over all groups");
  for (const std::size_t unit : units) {
    SliceSum& sum = slice_sums_[unit];
    // Release the event, which may hold a copy of the slice on the host.
    std::exchange(sum.summed, {}).wait(space_);
    if (exchanges_.rounds_slices()) convert<bfloat16, float>(space_, sum.rounded, slices_[unit].gradient);
  }
}

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
