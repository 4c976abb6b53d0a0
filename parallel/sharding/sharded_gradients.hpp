#pragma once

#include "core/parameter_store.hpp"
#include "parallel/sharding/replica_sums.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "parallel/sharding/tree_sum.hpp"

#include <span>
#include <vector>

/// Sharded gradients: each rank keeps one slice of every unit. The gradients of a micro-batch are summed over ranks
/// unit by unit, while the backward pass of the next units runs, and are added to the slice. In the last micro-batch of
/// a step each slice is then summed over the groups that hold the same slices, again while other units compute.
namespace mylos::parallel {

/// Memory for the units whose gradients are in progress: one unit is written while another is summed. Each unit is
/// summed in a call of its own: a unit that waited for others would keep its slot from the units after it, and the
/// layers of all but narrow models are long enough for a call (Communicator::least_sum_bytes).
class ShardedGradients {
 public:
  /// `slices` are this rank's, for all units in order. `store` must own no gradients. All arguments must outlive this
  /// object.
  ShardedGradients(const ModeSettings& settings, Mesh& mesh, ParameterStore& store,
                   std::span<const ParameterSlice> slices);
  ~ShardedGradients();
  ShardedGradients(const ShardedGradients&) = delete;
  ShardedGradients& operator=(const ShardedGradients&) = delete;

  void begin_step(const ExecutionSpace& space);
  void begin_micro_batch(bool last);
  /// Called when the unit's gradients of a micro-batch are complete on this rank.
  void reduce(std::size_t unit);
  /// Returns when the slices are summed over ranks, micro-batches and all groups that hold the same slices.
  void finish(const ExecutionSpace& space);

 private:
  static constexpr std::size_t no_unit = static_cast<std::size_t>(-1);

  struct Slot {
    Vector<float> memory;
    Vector<bfloat16> rounded;    ///< empty unless gradients are exchanged in bfloat16
    std::size_t unit = no_unit;  ///< unit being written or summed
    std::size_t lent = no_unit;  ///< unit whose slice is being exchanged in `rounded` between groups
    bool summing = false;
    bool last = false;      ///< true if the sum is of the step's last micro-batch
    std::size_t order = 0;  ///< sequence number of the sum
    Event summed;
  };

  Vector<float> take(std::size_t unit);
  Slot* oldest_sum(const Slot* but);
  template <class T>
  Vector<T> part_of(const Slot& slot, const Vector<T>& memory) const;
  Buffer rounded_if_exchanged(Slot& slot);
  void accumulate(const ExecutionSpace& space, Slot& slot);
  void accumulate_all(const ExecutionSpace& space, const Slot* but);
  void sum_replicas(const ExecutionSpace& space, Slot& slot);

  Communicator& ranks_;   ///< the ranks among which units are split
  ReplicaSums replicas_;  ///< over the ranks that hold the same slices
  ParameterStore& store_;
  std::vector<ParameterSlice> slices_;
  std::vector<Slot> slots_;
  std::vector<bool> has_begun_;     ///< per unit: its slice holds a sum of this step
  std::vector<TreeSum> tree_sums_;  ///< one per unit, or empty
  ExecutionSpace space_;
  bool is_last_ = false;  ///< the current micro-batch is the last of the step
  std::size_t order_ = 0;
};

}  // namespace mylos::parallel
