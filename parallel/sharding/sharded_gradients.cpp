#include "parallel/sharding/sharded_gradients.hpp"

#include "core/base/error.hpp"
#include "core/kernels/activation.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/trace.hpp"
#include "parallel/sharding/unit_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::parallel {

ShardedGradients::ShardedGradients(const ModeSettings& settings, Mesh& mesh, ParameterStore& store,
                                   std::span<const ParameterSlice> slices)
    : ranks_(mesh.shard()),
      replicas_(settings, mesh.replicate(), store.table(), slices),
      store_(store),
      slices_(slices.begin(), slices.end()),
      slots_(units_at_once(store.table())),
      has_begun_(slices.size()) {
  const std::size_t largest = store.largest_gradient_capacity();
  for (Slot& slot : slots_) {
    slot.memory = uninitialized<float>("mylos::sharded_gradients", largest);
    if (settings.bfloat16_gradients)
      slot.rounded = uninitialized<bfloat16>("mylos::sharded_gradients::rounded", largest);
  }
  if (settings.tree_sums) {
    for (const ParameterSlice& slice : slices_) {
      tree_sums_.emplace_back("mylos::sharded_gradients::partial", slice.gradient.size(), settings.micro_batches);
    }
  }
  store.set_gradient_source([this](std::size_t unit) { return take(unit); });
}

ShardedGradients::~ShardedGradients() {
  for (const Slot& slot : slots_) slot.summed.wait_for_its_end();
}

void ShardedGradients::begin_step(const ExecutionSpace& space) {
  space_ = space;
  store_.begin_gradients(space);
  has_begun_.assign(has_begun_.size(), false);
}

void ShardedGradients::begin_micro_batch(bool last) { is_last_ = last; }

Vector<float> ShardedGradients::take(std::size_t unit) {
  const auto free = std::ranges::find(slots_, no_unit, &Slot::unit);
  Slot* const slot = free != slots_.end() ? &*free : oldest_sum(nullptr);
  require(slot != nullptr, fmt::format("sharded gradients: more than {} units are written at once", slots_.size()));
  accumulate(space_, *slot);
  slot->unit = unit;
  return slice(slot->memory, 0, store_.capacity(unit));
}

/// Returns the slot whose sum began first. Sums begin in the same order on every rank.
ShardedGradients::Slot* ShardedGradients::oldest_sum(const Slot* but) {
  Slot* chosen = nullptr;
  for (Slot& slot : slots_) {
    if (&slot != but && slot.summing && (chosen == nullptr || slot.order < chosen->order)) chosen = &slot;
  }
  return chosen;
}

void ShardedGradients::reduce(std::size_t unit) {
  store_.finish_gradients(space_, unit);
  // If no other unit is trained, its gradients of the micro-batch before may still be summed in another slot.
  const auto found = std::ranges::find_if(slots_, [&](const Slot& slot) { return slot.unit == unit && !slot.summing; });
  require(found != slots_.end(), "sharded gradients: a unit is ready twice in a pass");
  Slot& slot = *found;
  const Buffer all = rounded_if_exchanged(slot);
  store_.take_gradients(unit);
  slot.summing = true;
  slot.last = is_last_;
  slot.order = ++order_;
  slot.summed = ranks_.reduce_scatter(space_, all, buffer_of(part_of(slot, slot.memory)),
                                      fmt::format("gradients of {}", store_.table().units()[unit].name));
  // Sums that began earlier ran during this unit's pass, so their slices can now be exchanged with the other groups.
  if (is_last_) accumulate_all(space_, &slot);
}

/// Returns a unit's gradients in the type in which they are exchanged.
Buffer ShardedGradients::rounded_if_exchanged(Slot& slot) {
  const std::size_t capacity = store_.capacity(slot.unit);
  const Vector<float> gradients = slice(slot.memory, 0, capacity);
  if (slot.rounded.extent(0) == 0) return without_padding(buffer_of(gradients), store_, slot.unit);
  if (slot.lent != no_unit) replicas_.finish(space_, slot.lent);
  slot.lent = no_unit;
  const Vector<bfloat16> rounded = slice(slot.rounded, 0, capacity);
  convert<float, bfloat16>(space_, gradients, rounded);
  return without_padding(buffer_of(rounded), store_, slot.unit);
}

template <class T>
Vector<T> ShardedGradients::part_of(const Slot& slot, const Vector<T>& memory) const {
  const std::size_t part = store_.capacity(slot.unit) / ranks_.size();
  return slice(memory, ranks_.rank() * part, (ranks_.rank() + 1) * part);
}

void ShardedGradients::accumulate(const ExecutionSpace& space, Slot& slot) {
  if (!slot.summing) return;
  {
    const TraceSpan span(TraceLane::waiting, "gradients of", store_.table().units()[slot.unit].name);
    slot.summed.wait(space);
  }
  const Vector<float> sum = part_of(slot, slot.memory), total = slices_[slot.unit].gradient;
  if (!tree_sums_.empty()) {
    tree_sums_[slot.unit].add(space, sum, total);
  } else if (has_begun_[slot.unit]) {
    add(space, sum, total);
  } else {
    Kokkos::deep_copy(space, total, sum);
  }
  has_begun_[slot.unit] = true;
  if (slot.last) sum_replicas(space, slot);
  slot.unit = no_unit;
  slot.summing = false;
}

/// slot.rounded has been exchanged. It is free until it is needed for another unit's gradients.
void ShardedGradients::sum_replicas(const ExecutionSpace& space, Slot& slot) {
  if (!replicas_.rounds()) return replicas_.begin(space, slot.unit, {});
  replicas_.begin(space, slot.unit, part_of(slot, slot.rounded));
  slot.lent = slot.unit;
}

void ShardedGradients::accumulate_all(const ExecutionSpace& space, const Slot* but) {
  while (Slot* const slot = oldest_sum(but)) accumulate(space, *slot);
}

void ShardedGradients::finish(const ExecutionSpace& space) {
  accumulate_all(space, nullptr);
  const TraceSpan span(TraceLane::waiting, "sums of", "gradients over all groups");
  replicas_.finish(space);
  for (Slot& slot : slots_) slot.lent = no_unit;
}

}  // namespace mylos::parallel
