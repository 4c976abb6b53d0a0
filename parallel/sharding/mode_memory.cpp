#include "parallel/sharding/all_reduced_gradients.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "parallel/sharding/tree_sum.hpp"

#include <algorithm>

namespace mylos::parallel {
namespace {

/// Capacities of units with their rests.
struct Capacities {
  std::size_t sum = 0, largest = 0;
};

Capacities capacities(const ParameterTable& table, std::size_t shards, bool only_trained) {
  Capacities found;
  for (std::size_t unit = 0; unit < table.network_units(); ++unit) {
    std::size_t capacity = 0;
    for (const std::size_t part : table.parts(unit)) {
      const ParameterUnit& each = table.units()[part];
      if (each.trained || !only_trained) capacity += shard_size(each.size, shards) * shards;
    }
    found = {found.sum + capacity, std::max(found.largest, capacity)};
  }
  return found;
}

}  // namespace

// Two units are needed at a time: the one in use and the next one, or the one being written and the one being summed.
// Added to these are the units whose tensors a unit reads besides its own.
std::size_t units_at_once(const ParameterTable& table) {
  std::size_t borrowed = 0;
  for (const ParameterUnit& unit : table.units()) borrowed = std::max(borrowed, unit.borrowed.size());
  return std::min<std::size_t>(2 + borrowed, table.network_units());
}

ModeMemory mode_memory(const ModeSettings& settings, std::size_t shards, const ParameterTable& table,
                       Precision precision) {
  const Capacities all = capacities(table, shards, false), trained = capacities(table, shards, true);
  const std::size_t element = bytes_of(precision);
  const bool splits_gradients = shards_gradients(settings.kind);
  ModeMemory memory{.slices = trained.sum / shards};
  const bool has_master_weights = shards_values(settings.kind) || precision != Precision::float32;
  memory.values = (shards_values(settings.kind) ? units_at_once(table) * all.largest : all.sum) * element;
  if (has_master_weights) memory.values += all.sum / shards * sizeof(float);
  const std::size_t summed = splits_gradients ? memory.slices : trained.sum;
  const std::size_t whole = splits_gradients ? units_at_once(table) : 0;
  const std::size_t levels = settings.tree_sums ? TreeSum::levels(settings.micro_batches) : 0;
  memory.gradients = (summed * (1 + levels) + whole * trained.largest + unread_gradients(table)) * sizeof(float);
  const std::size_t rounded = splits_gradients ? whole : AllReducedGradients::rounded_positions;
  memory.exchange = settings.bfloat16_gradients ? rounded * trained.largest * sizeof(bfloat16) : 0;
  return memory;
}

}  // namespace mylos::parallel
