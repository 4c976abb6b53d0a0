#include "parallel/planning/strategy_memory.hpp"

#include "core/parameter_store.hpp"
#include "parallel/sharding/tree_sum.hpp"

#include <algorithm>

namespace mylos::parallel {
namespace {

/// Elements of units with their rests.
struct Capacities {
  std::size_t sum = 0, largest = 0;
};

/// Counts the units for which `counts` returns true.
template <class Counts>
Capacities capacities(const UnitExchanges& exchanges, const Counts& counts) {
  Capacities found;
  for (std::size_t unit = 0; unit < exchanges.table.network_units(); ++unit) {
    std::size_t capacity = 0;
    for (const std::size_t part : exchanges.table.parts(unit)) {
      if (counts(part)) capacity += exchanges.slice_size(part) * exchanges.shards;
    }
    found = {found.sum + capacity, std::max(found.largest, capacity)};
  }
  return found;
}

}  // namespace

StrategyMemory strategy_memory(const UnitExchanges& exchanges) {
  const StrategySettings& settings = exchanges.settings;
  const auto has_master = [&](std::size_t unit) { return exchanges.has_master(unit); };
  const Capacities all = capacities(exchanges, [](std::size_t) { return true; });
  const Capacities trained =
      capacities(exchanges, [&](std::size_t unit) { return exchanges.table.units()[unit].trained; });
  const bool splits_values = shards_values(settings.kind), splits_gradients = shards_gradients(settings.kind);
  StrategyMemory memory{.slices = trained.sum / exchanges.shards};
  const std::size_t held = splits_values ? exchanges.value_places() * all.largest : all.sum;
  memory.values = held * bytes_of(exchanges.precision);
  const bool has_master_weights = splits_values || exchanges.precision != Precision::float32;
  const std::size_t with_master = capacities(exchanges, has_master).sum;
  if (has_master_weights) memory.values += with_master / exchanges.shards * sizeof(float);
  if (splits_values) memory.values += (all.sum - with_master) / exchanges.shards * bytes_of(exchanges.precision);
  const std::size_t levels = settings.tree_sums ? TreeSum::levels(settings.micro_batches) : 0;
  const std::size_t summed = (splits_gradients ? memory.slices : trained.sum) * (1 + levels);
  const std::size_t in_places = exchanges.gradient_places() * trained.largest;
  memory.gradients = (summed + (splits_gradients ? in_places : 0) + unread_gradients(exchanges.table)) * sizeof(float);
  if (settings.bfloat16_gradients) memory.exchange = in_places * sizeof(bfloat16);
  return memory;
}

}  // namespace mylos::parallel
