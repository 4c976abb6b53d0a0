#pragma once

#include "core/parameter_store.hpp"
#include "core/unit_hooks.hpp"
#include "parallel/launch/launch.hpp"
#include "parallel/sharding/strategy_kind.hpp"

#include <memory>
#include <span>
#include <string>

/// How parameters, gradients and optimizer state are distributed over ranks. The trainer uses only this interface.
namespace mylos::parallel {

/// Elements [begin, end) of a unit.
struct UnitRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A way of distributing the state over ranks. Unless stated otherwise, every function is collective: all ranks call
/// it, in the same order.
class ShardingStrategy {
 public:
  virtual ~ShardingStrategy() = default;

  /// The hooks that the model calls for its units.
  virtual UnitHooks& hooks() = 0;
  /// The slices that this rank updates, one per unit, in order. They have equal sizes on all ranks and are cut at
  /// multiples of slice_block. The last slices of a unit may extend beyond its elements, into padding that stays zero.
  virtual std::span<const ParameterSlice> slices() const = 0;
  /// The elements of a unit that `rank` writes to a checkpoint. The ranges of all ranks are disjoint and cover the
  /// unit.
  virtual UnitRange saved_range(std::size_t unit, std::size_t rank) const = 0;

  /// Begins a step, with zero gradients. Errors: std::invalid_argument if the store is for inference.
  virtual void begin_step(const ExecutionSpace& space) = 0;
  /// Begins the pass of a micro-batch. In the `last` one of a step, gradients_ready means that the unit's gradients of
  /// the step are complete on this rank.
  virtual void begin_micro_batch(bool last) = 0;
  /// Returns when the gradient of every slice is summed over ranks and micro-batches, on the space of begin_step.
  virtual void finish_gradients() = 0;
  /// sum (1) = the sum of `values` over all ranks. Each rank passes one value for each block of slice_block elements of
  /// its slices. Each rank adds its values in order (see sum_in_order), and the ranks' sums are added in the order of
  /// Communicator. With tree_sums the sum is exact instead (exact_sum.hpp), so that it has the same bits for any mode
  /// and number of ranks.
  virtual void sum_of_blocks(const ExecutionSpace& space, const ConstVector<double>& values,
                             const Vector<double>& sum) = 0;
  /// values = their sum over all ranks, in groups that the mode uses anyway. For sums that are exact in any order: each
  /// value is zero on all ranks but one.
  virtual void join_values(const ExecutionSpace& space, const Vector<double>& values, const std::string& what) = 0;
  /// Updates the store's values, in the compute type, from the master weights of the units that have changed. Other
  /// ranks may read a unit's master weights until the unit has been acquired, so they must not change before that.
  virtual void sync_parameters(const ExecutionSpace& space, ChangedUnits changed) = 0;

  /// Reads master weights of a tensor, from element `first` on, into host memory on every rank.
  virtual void read_tensor(std::size_t tensor, std::size_t first, std::span<float> values) = 0;
  /// Reads master weights like read_tensor, but only on rank `root` of all ranks. Each rank that owns some of the
  /// elements sends only these. `values` must have the same size on all ranks; it is left undefined on the others.
  virtual void gather_tensor(std::size_t tensor, std::size_t first, std::span<float> values, std::size_t root) = 0;
  /// The elements of a tensor whose master weights this rank owns; may be empty. Not collective.
  virtual TensorRange owned_range(std::size_t tensor) const = 0;
  /// All ranks.
  virtual Communicator& world() = 0;
  /// The ranks that hold the same slices as this one, in the same order on each; a group of one if there are no others.
  virtual Communicator& copies() = 0;
  /// Copies master weights [first, first + count) of a tensor from rank `from` of copies() to its other ranks. The
  /// range must lie in this rank's owned_range. Collective over copies().
  virtual void copy_tensor(std::size_t tensor, std::size_t first, std::size_t count, std::size_t from) = 0;
  /// Sets elements of a tensor, from element `first` on. Each rank keeps those in its owned_range; the others need not
  /// be passed. Takes effect with sync_parameters. Not collective.
  virtual void write_tensor(std::size_t tensor, std::size_t first, std::span<const float> values) = 0;
  /// Sets elements from the tensor's first element on.
  void write_tensor(std::size_t tensor, std::span<const float> values) { write_tensor(tensor, 0, values); }
};

/// Returns the layout of the parameter store in a mode.
StoreLayout store_layout(StrategyKind kind, std::size_t shards);

/// Returns the sharding strategy for `settings` over the ranks of `mesh`. `store` must have the matching layout. Both
/// must outlive the strategy.
std::unique_ptr<ShardingStrategy> make_sharding_strategy(const StrategySettings& settings, Mesh& mesh,
                                                         ParameterStore& store);

/// Returns the strategy for a single process, without sharding. If the store's values are float, they are the master
/// weights.
std::unique_ptr<ShardingStrategy> make_single_process_strategy(ParameterStore& store);

}  // namespace mylos::parallel
