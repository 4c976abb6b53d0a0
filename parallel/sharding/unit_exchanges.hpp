#pragma once

#include "core/parameters.hpp"
#include "parallel/communicator/communicator.hpp"
#include "parallel/sharding/strategy_kind.hpp"

#include <compare>
#include <cstddef>
#include <vector>

namespace mylos::parallel {

/// A call of Communicator that all ranks of a group make with the same values.
struct CollectiveCall {
  enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, gather };
  /// All ranks, and the two groups that Mesh makes: the ranks that split a unit, and those that hold the same slices.
  enum Group : std::size_t { all, shard, replicate };
  Kind kind = Kind::all_reduce;
  std::size_t count = 0;  ///< elements of the whole array
  std::size_t part = 0;   ///< elements of a rank's part; 0 if the array is divided evenly
  ElementType type = ElementType::float32;
  ElementType sum_type = ElementType::float32;  ///< of the result of a reduce_scatter
  std::size_t root = 0;                         ///< of a broadcast or a gather
  Group group = all;

  friend auto operator<=>(const CollectiveCall&, const CollectiveCall&) = default;
};

/// How a strategy divides the units of a model among ranks, and the calls that exchange them. Needs neither ranks nor
/// memory, so that plans ask the same.
struct UnitExchanges {
  StrategySettings settings;
  std::size_t shards = 1;    ///< ranks that split a unit
  std::size_t replicas = 1;  ///< ranks that hold the same slices
  Precision precision = Precision::float32;
  const ParameterTable& table;

  std::size_t ranks_of(CollectiveCall::Group group) const;
  /// Elements of a rank's slice of a unit, padding included.
  std::size_t slice_size(std::size_t unit) const { return shard_size(table.units()[unit].size, shards); }
  /// Bytes of a whole unit's values or gradients, padding included.
  std::size_t value_bytes(std::size_t unit) const { return slice_size(unit) * shards * bytes_of(precision); }
  std::size_t gradient_bytes(std::size_t unit) const { return slice_size(unit) * shards * sizeof(float); }
  /// False if the only values of a unit are those in 16 bits.
  bool has_master(std::size_t unit) const { return precision == Precision::float32 || table.units()[unit].has_master; }
  /// True if slices are exchanged as bfloat16. A single group exchanges nothing, and so rounds nothing.
  bool rounds_slices() const { return settings.bfloat16_gradients && replicas > 1; }
  /// Numbers of places that units take in turn, see PlacedUnit: where their values are gathered, and where their
  /// gradients are summed. Whole values and gradients have a place for each unit, but bfloat16 ones are sent from two.
  std::size_t value_places() const;
  std::size_t gradient_places() const;
  /// The units whose values share the memory of `unit`: it and its rest if values are sharded, otherwise it alone.
  std::vector<std::size_t> gathered_with(std::size_t unit) const;

  /// The call that makes a unit's values complete.
  CollectiveCall gather(std::size_t unit) const;
  /// The call that sums a unit's gradients: a slice, or all of it if the optimizer state is not sharded.
  CollectiveCall sum(std::size_t unit) const;
  /// The call that sums a slice over the ranks that hold the same, after `sum`.
  CollectiveCall sum_slice(std::size_t unit) const;

 private:
  ElementType gradient_type() const {
    return settings.bfloat16_gradients ? ElementType::bfloat16 : ElementType::float32;
  }
};

/// Returns the number of whole units that a mode has memory for, in values or in gradients, if it shards them.
std::size_t units_at_once(const ParameterTable& table);

}  // namespace mylos::parallel
