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
      replicas_(mesh.replicate()),
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

Vector<float> UnitGradients::take(std::size_t unit) {
  const auto free = std::ranges::find(places_, nobody, &Place::unit);
  Place& place = free != places_.end() ? *free : oldest();
  accumulate(space_, place);
  place.unit = unit;
  return slice(place.memory, 0, store_.capacity(unit));
}

UnitGradients::Place& UnitGradients::oldest() {
  Place* chosen = nullptr;
  for (Place& place : places_) {
    if (place.summing && (chosen == nullptr || place.order < chosen->order)) chosen = &place;
  }
  require(chosen != nullptr, fmt::format("unit gradients: more than {} units are written at once", places_.size()));
  return *chosen;
}

void UnitGradients::reduce(std::size_t unit) {
  store_.finish_gradients(space_, unit);
  const auto found = std::ranges::find(places_, unit, &Place::unit);
  require(found != places_.end() && !found->summing, "unit gradients: a unit is told twice in a pass");
  Place& place = *found;
  const std::size_t capacity = store_.capacity(unit);
  Buffer all = buffer_of(slice(place.memory, 0, capacity));
  if (place.rounded.extent(0) > 0) {
    const Vector<bfloat16> rounded = slice(place.rounded, 0, capacity);
    convert<float, bfloat16>(space_, slice(place.memory, 0, capacity), rounded);
    all = buffer_of(rounded);
  }
  store_.take_gradients(unit);
  place.summing = true;
  place.order = ++order_;
  place.summed = ranks_.reduce_scatter(space_, all, buffer_of(part_of(place)),
                                       fmt::format("gradients of {}", store_.table().units()[unit].name));
}

Vector<float> UnitGradients::part_of(const Place& place) const {
  const std::size_t part = store_.capacity(place.unit) / ranks_.size();
  return slice(place.memory, ranks_.rank() * part, (ranks_.rank() + 1) * part);
}

void UnitGradients::accumulate(const ExecutionSpace& space, Place& place) {
  if (!place.summing) return;
  {
    const TraceSpan span(TraceLane::waiting, "gradients of", store_.table().units()[place.unit].name);
    place.summed.wait(space);
  }
  const Vector<float> sum = part_of(place), total = slices_[place.unit].gradient;
  if (!tree_sums_.empty()) {
    tree_sums_[place.unit].add(space, sum, total);
  } else if (has_begun_[place.unit]) {
    add(space, sum, total);
  } else {
    Kokkos::deep_copy(space, total, sum);
  }
  has_begun_[place.unit] = true;
  place.unit = nobody;
  place.summing = false;
}

void UnitGradients::finish(const ExecutionSpace& space) {
  // In the order in which they were begun, which is that of every rank.
  std::vector<Place*> ordered;
  for (Place& place : places_) ordered.push_back(&place);
  std::ranges::sort(ordered, {}, [](const Place* place) { return place->order; });
  for (Place* place : ordered) accumulate(space, *place);
  std::vector<Event> sums;
  for (const ParameterSlice& part : slices_) {
    sums.push_back(replicas_.all_reduce(space, buffer_of(part.gradient), "gradients of all groups"));
  }
  for (const Event& sum : sums) sum.wait(space);
}

}  // namespace mylos::parallel
