#include "parallel/sharding/unit_gradients.hpp"

#include "core/base/error.hpp"
#include "core/kernels/activation.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/trace.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::parallel {

UnitGradients::UnitGradients(const ModeSettings& settings, Mesh& mesh, ParameterStore& store,
                             std::span<const ParameterSlice> slices)
    : ranks_(mesh.shard()),
      replicas_(settings, mesh.replicate(), store.table(), slices),
      store_(store),
      slices_(slices.begin(), slices.end()),
      places_(units_at_once(store.table())),
      has_begun_(slices.size()) {
  const std::size_t largest = store.largest_capacity();
  for (Place& place : places_) {
    place.memory = uninitialized<float>("mylos::unit_gradients", largest);
    if (settings.bfloat16_gradients) place.rounded = uninitialized<bfloat16>("mylos::unit_gradients::rounded", largest);
  }
  if (settings.tree_sums) {
    for (const ParameterSlice& slice : slices_) {
      tree_sums_.emplace_back("mylos::unit_gradients::partial", slice.end - slice.begin, settings.micro_batches);
    }
  }
  store.set_gradient_source([this](std::size_t unit) { return take(unit); });
}

UnitGradients::~UnitGradients() {
  for (const Place& place : places_) place.summed.wait_for_its_end();
}

void UnitGradients::begin_step(const ExecutionSpace& space) {
  space_ = space;
  store_.begin_gradients(space);
  has_begun_.assign(has_begun_.size(), false);
}

void UnitGradients::begin_micro_batch(bool last) { is_last_ = last; }

Vector<float> UnitGradients::take(std::size_t unit) {
  const auto free = std::ranges::find(places_, nobody, &Place::unit);
  Place* const place = free != places_.end() ? &*free : oldest_sum(nullptr);
  require(place != nullptr, fmt::format("unit gradients: more than {} units are written at once", places_.size()));
  accumulate(space_, *place);
  place->unit = unit;
  return slice(place->memory, 0, store_.capacity(unit));
}

/// The sums begin in the same order on every rank.
UnitGradients::Place* UnitGradients::oldest_sum(const Place* but) {
  Place* chosen = nullptr;
  for (Place& place : places_) {
    if (&place != but && place.summing && (chosen == nullptr || place.order < chosen->order)) chosen = &place;
  }
  return chosen;
}

void UnitGradients::reduce(std::size_t unit) {
  store_.finish_gradients(space_, unit);
  const auto found = std::ranges::find(places_, unit, &Place::unit);
  require(found != places_.end() && !found->summing, "unit gradients: a unit is told twice in a pass");
  Place& place = *found;
  const Buffer all = rounded_if_exchanged(place);
  store_.take_gradients(unit);
  place.summing = true;
  place.last = is_last_;
  place.order = ++order_;
  place.summed = ranks_.reduce_scatter(space_, all, buffer_of(part_of(place, place.memory)),
                                       fmt::format("gradients of {}", store_.table().units()[unit].name));
  // What was begun before this unit's pass has had that long: its slices can go on to the other groups.
  if (is_last_) accumulate_all(space_, &place);
}

/// A unit's gradients as they are exchanged.
Buffer UnitGradients::rounded_if_exchanged(Place& place) {
  const std::size_t capacity = store_.capacity(place.unit);
  const Vector<float> gradients = slice(place.memory, 0, capacity);
  if (place.rounded.extent(0) == 0) return buffer_of(gradients);
  if (place.lent != nobody) replicas_.finish(space_, place.lent);
  place.lent = nobody;
  const Vector<bfloat16> rounded = slice(place.rounded, 0, capacity);
  convert<float, bfloat16>(space_, gradients, rounded);
  return buffer_of(rounded);
}

template <class T>
Vector<T> UnitGradients::part_of(const Place& place, const Vector<T>& memory) const {
  const std::size_t part = store_.capacity(place.unit) / ranks_.size();
  return slice(memory, ranks_.rank() * part, (ranks_.rank() + 1) * part);
}

void UnitGradients::accumulate(const ExecutionSpace& space, Place& place) {
  if (!place.summing) return;
  {
    const TraceSpan span(TraceLane::waiting, "gradients of", store_.table().units()[place.unit].name);
    place.summed.wait(space);
  }
  const Vector<float> sum = part_of(place, place.memory), total = slices_[place.unit].gradient;
  if (!tree_sums_.empty()) {
    tree_sums_[place.unit].add(space, sum, total);
  } else if (has_begun_[place.unit]) {
    add(space, sum, total);
  } else {
    Kokkos::deep_copy(space, total, sum);
  }
  has_begun_[place.unit] = true;
  if (place.last) sum_replicas(space, place);
  place.unit = nobody;
  place.summing = false;
}

/// The place's memory in bfloat16 has been exchanged, and is free until another unit's gradients are rounded in it.
void UnitGradients::sum_replicas(const ExecutionSpace& space, Place& place) {
  if (!replicas_.rounds()) return replicas_.begin(space, place.unit, {});
  replicas_.begin(space, place.unit, part_of(place, place.rounded));
  place.lent = place.unit;
}

void UnitGradients::accumulate_all(const ExecutionSpace& space, const Place* but) {
  while (Place* const place = oldest_sum(but)) accumulate(space, *place);
}

void UnitGradients::finish(const ExecutionSpace& space) {
  accumulate_all(space, nullptr);
  const TraceSpan span(TraceLane::waiting, "sums of", "gradients over all groups");
  replicas_.finish(space);
  for (Place& place : places_) place.lent = nobody;
}

}  // namespace mylos::parallel
