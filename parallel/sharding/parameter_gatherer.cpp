#include "parallel/sharding/parameter_gatherer.hpp"

#include "core/element_type.hpp"
#include "core/kernels/activation.hpp"
#include "parallel/sharding/unit_buffer.hpp"

#include <fmt/format.h>

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
    : ranks_(ranks),
      store_(store),
      master_weights_(std::move(master_weights)),
      slots_(store.table()),
      memory_(slots_.size()) {
  const std::size_t element = bytes_of(store.precision());
  for (Memory& memory : memory_) {
    memory.bytes = uninitialized<std::byte>("mylos::gathered_unit", store.largest_capacity() * element);
  }
}

ParameterGatherer::~ParameterGatherer() {
  for (const Memory& memory : memory_) memory.gathered.wait_for_its_end();
}

void ParameterGatherer::invalidate(const ExecutionSpace& space, ChangedUnits changed) {
  slots_.clear(
      [this, &space](std::size_t slot) {
        memory_[slot].gathered.discard(space);  // it gathers outdated values
        take_values(slot);
      },
      changed);
}

/// Returns the slot's unit and its rest, one after the other in the slot's memory.
std::vector<ParameterGatherer::Part> ParameterGatherer::parts(std::size_t slot) const {
  std::vector<Part> parts;
  std::size_t begin = 0;
  for (const std::size_t unit : store_.table().parts(slots_.unit_in(slot))) {
    const std::size_t end = begin + store_.capacity(unit) * bytes_of(store_.precision());
    parts.push_back({unit, slice(memory_[slot].bytes, std::exchange(begin, end), end)});
  }
  return parts;
}

void ParameterGatherer::take_values(std::size_t slot) {
  for (const Part& part : parts(slot)) store_.give_values(part.unit, {});
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

/// The unit of the slot may be a wrong prediction that was never read. wait_for_its_end would lose the results of units
/// that were gathered together with it.
UnitSlots::Discard ParameterGatherer::discard(const ExecutionSpace& space) {
  return [this, space](std::size_t slot) {
    memory_[slot].gathered.wait(space);
    take_values(slot);
  };
}

/// Starts to gather the units of these slots.
void ParameterGatherer::gather(const ExecutionSpace& space, std::span<const std::size_t> slots) {
  if (slots.empty()) return;
  std::vector<NamedParts> arrays;
  for (const std::size_t slot : slots) {
    for (const auto& [unit, all] : parts(slot)) {
      arrays.push_back({buffer_of(own_slice(space, unit, all)), without_padding(buffer_of(all), store_, unit),
                        fmt::format("gather {}", store_.table().units()[unit].name)});
    }
  }
  const Event gathered = ranks_.all_gather_coalesced(space, arrays);
  for (const std::size_t slot : slots) memory_[slot].gathered = gathered;
}

void ParameterGatherer::acquire(const ExecutionSpace& space, std::size_t unit) {
  const UnitSlots::Choice choice = slots_.acquire(unit, discard(space));
  gather(space, choice.to_gather);
  prefetch(space);
  for (const std::size_t slot : choice.held) {
    memory_[slot].gathered.wait(space);
    for (const Part& part : parts(slot)) store_.give_values(part.unit, part.values);
  }
}

void ParameterGatherer::prefetch(const ExecutionSpace& space) {
  gather(space, slots_.prefetch(discard(space)).to_gather);
}

void ParameterGatherer::release(std::size_t unit) { slots_.release(unit); }

}  // namespace mylos::parallel
