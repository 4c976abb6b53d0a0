#include "parallel/sharding/all_reduced_gradients.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "parallel/sharding/tree_sum.hpp"

#include <algorithm>

namespace mylos::parallel {
namespace {

std::size_t whole_blocks(std::size_t bytes, std::size_t block) { return (bytes + block - 1) / block * block; }

std::size_t capacity_of(const ParameterUnit& unit, std::size_t shards) {
  return shard_size(unit.size, shards) * shards;
}

/// Returns the bytes of one array per unit with `element` bytes for each of its elements, or for each of a rank's
/// slice.
std::size_t bytes_of_units(const ParameterTable& table, std::size_t shards, bool sliced, std::size_t element,
                           std::size_t block) {
  std::size_t sum = 0;
  for (const ParameterUnit& unit : table.units()) {
    sum += whole_blocks(capacity_of(unit, shards) / (sliced ? shards : 1) * element, block);
  }
  return sum;
}

/// Returns the bytes of an array that has room for any unit.
std::size_t bytes_of_largest(const ParameterTable& table, std::size_t shards, std::size_t element, std::size_t block) {
  std::size_t largest = 0;
  for (const ParameterUnit& unit : table.units()) largest = std::max(largest, capacity_of(unit, shards));
  return whole_blocks(largest * element, block);
}

}  // namespace

// Two units are needed at a time: the one in use and the next one, or the one being written and the one being summed.
// Added to these are the units whose tensors a unit reads besides its own.
std::size_t units_at_once(const ParameterTable& table) {
  std::size_t borrowed = 0;
  for (const ParameterUnit& unit : table.units()) borrowed = std::max(borrowed, unit.borrowed.size());
  return std::min<std::size_t>(2 + borrowed, table.units().size());
}

ModeMemory mode_memory(const ModeSettings& settings, std::size_t shards, const ParameterTable& table,
                       Precision precision, std::size_t block) {
  const auto of_units = [&](bool sliced, std::size_t element) {
    return bytes_of_units(table, shards, sliced, element, block);
  };
  const auto of_largest = [&](std::size_t element) { return bytes_of_largest(table, shards, element, block); };
  const bool splits_values = shards_values(settings.kind), splits_gradients = shards_gradients(settings.kind);
  const std::size_t element = bytes_of(precision);
  ModeMemory memory{.slices = of_units(true, sizeof(float))};
  const bool has_master_weights = splits_values || precision != Precision::float32;
  memory.values = splits_values ? units_at_once(table) * of_largest(element) : of_units(false, element);
  if (has_master_weights) memory.values += memory.slices;
  const std::size_t whole = splits_gradients ? units_at_once(table) : 0;
  const std::size_t levels = settings.tree_sums ? TreeSum::levels(settings.micro_batches) : 0;
  memory.gradients = (1 + levels) * of_units(splits_gradients, sizeof(float)) + whole * of_largest(sizeof(float));
  const std::size_t rounded = splits_gradients ? whole : AllReducedGradients::rounded_positions;
  memory.exchange = settings.bfloat16_gradients ? rounded * of_largest(sizeof(bfloat16)) : 0;
  return memory;
}

}  // namespace mylos::parallel
