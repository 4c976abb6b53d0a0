#pragma once

#include "core/parameter_store.hpp"
#include "core/unit_hooks.hpp"
#include "parallel/launch/launch.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string_view>

/// How parameters, gradients and optimizer state are spread over ranks. The trainer sees only this.
namespace mylos::parallel {

enum class ModeKind { replicated, sharded_optimizer, sharded_gradients, sharded, hybrid };
/// "sharded-optimizer"; nothing where the name is of no mode.
std::string_view to_string(ModeKind kind);
std::optional<ModeKind> parse_mode(std::string_view name);

/// What a mode splits among ranks beside the optimizer; every one but replicated splits that.
bool shards_values(ModeKind kind);
bool shards_gradients(ModeKind kind);

/// Elements [begin, end) of a unit.
struct UnitRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct ModeSettings {
  ModeKind kind = ModeKind::replicated;
  bool bfloat16_gradients = false;  ///< exchanged rounded; sums are float
  bool tree_sums = false;           ///< sums over micro-batches and blocks are balanced binary trees: --deterministic
  std::size_t micro_batches = 1;    ///< the most of a step on a rank; with tree_sums of every step on every rank
};

/// One way of spreading. Every call is collective: all ranks make it, in the same order.
class ShardingStrategy {
 public:
  virtual ~ShardingStrategy() = default;

  /// What the model tells its units to.
  virtual UnitHooks& schedule() = 0;
  /// The slices of all units that this rank updates, in the order of units: of equal size on every rank, cut at
  /// multiples of shard_alignment. The last may reach beyond the unit's elements, into padding that stays zero.
  virtual std::span<const ParameterSlice> slices() const = 0;
  /// The elements of a unit that `rank` writes into a checkpoint. Those of all ranks are disjoint and all of the unit.
  virtual UnitRange saved_range(std::size_t unit, std::size_t rank) const = 0;

  /// A step begins: gradients count from zero.
  virtual void begin_step(const ExecutionSpace& space) = 0;
  /// A micro-batch's pass begins; after the `last` one of a step what `gradients_ready` tells is complete on this rank.
  virtual void begin_micro_batch(bool last) = 0;
  /// Returns when the gradient of every slice is the sum over ranks and micro-batches.
  virtual void finish_gradients(const ExecutionSpace& space) = 0;
  /// Sum of values that each rank has for its slices: `values` of this rank, as many for each block of shard_alignment
  /// elements of a slice as on every rank. Each rank adds its own in order, and ranks' sums are added in the order of
  /// Communicator. With tree_sums it is a balanced tree over the blocks of each unit instead, so the same bits for any
  /// mode and number of ranks.
  virtual double sum_of_blocks(std::span<const double> values) = 0;
  /// Makes the store's values from the master weights, in the compute type. Other ranks may read a unit's master
  /// weights until the unit has been acquired: they change after that only.
  virtual void sync_parameters(const ExecutionSpace& space) = 0;

  /// Master values of a tensor from its element `first` on, on the host of every rank.
  virtual void read_tensor(std::size_t tensor, std::size_t first, std::span<float> values) = 0;
  /// The same on the host of the first rank only. Every rank that has some of them sends those and no others;
  /// `values`, of one size on all ranks, is left undefined on the others.
  virtual void gather_tensor(std::size_t tensor, std::size_t first, std::span<float> values) = 0;
  /// The elements of a tensor whose master weights this rank has; empty where it has none. Not collective.
  virtual TensorRange owned_range(std::size_t tensor) const = 0;
  /// The ranks that have the same slices as this one, in the same order on each: a group of one where no other does.
  virtual Communicator& copies() = 0;
  /// Master weights [first, first + count) of a tensor, within this rank's owned_range, become those of rank `from` of
  /// copies(). Collective over copies().
  virtual void copy_tensor(std::size_t tensor, std::size_t first, std::size_t count, std::size_t from) = 0;
  /// Sets elements of a tensor from `first` on, of which each rank keeps those of its owned_range: it need not be given
  /// the others. `sync_parameters` makes them seen. Not collective.
  virtual void write_tensor(std::size_t tensor, std::size_t first, std::span<const float> values) = 0;
  /// The same from the tensor's first element on.
  void write_tensor(std::size_t tensor, std::span<const float> values) { write_tensor(tensor, 0, values); }
};

/// How many neighbouring ranks split a unit in a mode: the size of Mesh's shard groups. `shard_size` is of hybrid.
std::size_t ranks_that_split(ModeKind kind, std::size_t shard_size, std::size_t ranks);

/// How the store of a mode is made.
StoreLayout store_layout(ModeKind kind, std::size_t shards);

/// The mode `settings` says, over the ranks of `mesh`, for a store of its layout. Both outlive it.
std::unique_ptr<ShardingStrategy> make_sharding_strategy(const ModeSettings& settings, Mesh& mesh,
                                                         ParameterStore& store);

/// Everything whole in one process. Master weights are the store's own values where those are float.
std::unique_ptr<ShardingStrategy> make_single_process_mode(ParameterStore& store);

/// Whole units that a mode has memory for at a time, of values and of gradients, where it splits them.
std::size_t units_at_once(const ParameterTable& table);

/// What a rank holds in a mode, in bytes, by formula: with P elements of parameters split among n ranks, slices have
/// P/n.
struct ModeMemory {
  std::size_t slices = 0;  ///< elements of this rank's slices: each optimizer slot has as many floats
  std::size_t values =
      0;  ///< in the compute type, gathered units included, and float master weights beside 16-bit ones
  std::size_t gradients = 0;  ///< with the units that are being summed
  std::size_t exchange = 0;   ///< gradients in the type in which they are exchanged
};
ModeMemory mode_memory(const ModeSettings& settings, std::size_t shards, const ParameterTable& table,
                       Precision precision);

}  // namespace mylos::parallel
