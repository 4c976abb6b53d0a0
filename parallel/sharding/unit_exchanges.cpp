#include "parallel/sharding/unit_exchanges.hpp"

#include <algorithm>

namespace mylos::parallel {

// Two units are needed at a time: the one in use and the next one, or the one being written and the one being summed.
// Added to these are the units whose tensors a unit reads besides its own.
std::size_t units_at_once(const ParameterTable& table) {
  std::size_t borrowed = 0;
  for (const ParameterUnit& unit : table.units()) borrowed = std::max(borrowed, unit.borrowed.size());
  return std::min<std::size_t>(2 + borrowed, table.network_units());
}

std::size_t UnitExchanges::ranks_of(CollectiveCall::Group group) const {
  if (group == CollectiveCall::all) return shards * replicas;
  return group == CollectiveCall::shard ? shards : replicas;
}

std::size_t UnitExchanges::value_places() const {
  return shards_values(settings.kind) ? units_at_once(table) : table.units().size();
}

std::size_t UnitExchanges::gradient_places() const {
  if (shards_gradients(settings.kind)) return units_at_once(table);
  return settings.bfloat16_gradients ? 2 : table.units().size();
}

std::vector<std::size_t> UnitExchanges::gathered_with(std::size_t unit) const {
  return shards_values(settings.kind) ? table.parts(unit) : std::vector<std::size_t>{unit};
}

// Padding at a unit's end need not be exchanged. With many ranks a small unit consists mainly of padding.
CollectiveCall UnitExchanges::gather(std::size_t unit) const {
  const std::size_t element = bytes_of(precision);
  return {.kind = CollectiveCall::Kind::all_gather,
          .count = table.units()[unit].size * element,
          .part = slice_size(unit) * element,
          .type = ElementType::byte,
          .group = CollectiveCall::shard};
}

CollectiveCall UnitExchanges::sum(std::size_t unit) const {
  CollectiveCall call{.count = table.units()[unit].size, .type = gradient_type(), .group = CollectiveCall::replicate};
  if (!shards_optimizer(settings.kind)) return call;
  call.kind = CollectiveCall::Kind::reduce_scatter;
  call.part = slice_size(unit);
  call.group = CollectiveCall::shard;
  return call;
}

CollectiveCall UnitExchanges::sum_slice(std::size_t unit) const {
  const ElementType type = rounds_slices() ? ElementType::bfloat16 : ElementType::float32;
  return {.count = slice_size(unit), .type = type, .group = CollectiveCall::replicate};
}

}  // namespace mylos::parallel
