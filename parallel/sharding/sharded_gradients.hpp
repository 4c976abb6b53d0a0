#pragma once

#include "core/parameter_store.hpp"
#include "parallel/sharding/replica_sums.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "parallel/sharding/tree_sum.hpp"

#include <span>
#include <vector>

/// Gradients of which each rank keeps a slice: a micro-batch's are summed over ranks unit by unit, while the next
/// units' backward pass computes, and added to the slice. In the last micro-batch of a step each slice is then summed
/// over the groups that hold the same ones, also while other units compute.
namespace mylos::parallel {

/// Memory for the units whose gradients are under way: one is written while another is summed.
class ShardedGradients {
 public:
  /// `slices` are this rank's, of all units in order; `store` owns no gradients. All outlive it.
  ShardedGradients(const ModeSettings& settings, Mesh& mesh, ParameterStore& store,
                   std::span<const ParameterSlice> slices);
  ~ShardedGradients();
  ShardedGradients(const ShardedGradients&) = delete;
  ShardedGradients& operator=(const ShardedGradients&) = delete;

  void begin_step(const ExecutionSpace& space);
  void begin_micro_batch(bool last);
  /// The unit's gradients of a micro-batch are complete on this rank.
  void reduce(std::size_t unit);
  /// Returns when the slices are the sums over ranks and micro-batches, over all groups that hold the same ones.
  void finish(const ExecutionSpace& space);

 private:
  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

  struct Slot {
    Vector<float> memory;
    Vector<bfloat16> rounded;   ///< where that is exchanged
    std::size_t unit = nobody;  ///< written or summed
    std::size_t lent = nobody;  ///< the unit whose slice travels in `rounded` between groups
    bool summing = false;
    bool last = false;      ///< what is summed is of the step's last micro-batch
    std::size_t order = 0;  ///< of the sums that were begun
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

  Communicator& ranks_;   ///< that split the units
  ReplicaSums replicas_;  ///< over the ranks that hold the same slices
  ParameterStore& store_;
  std::vector<ParameterSlice> slices_;
  std::vector<Slot> slots_;
  std::vector<bool> has_begun_;     ///< of each unit: its slice holds a micro-batch's sum of this step
  std::vector<TreeSum> tree_sums_;  ///< of each unit, or none
  ExecutionSpace space_;
  bool is_last_ = false;  ///< the micro-batch whose pass is under way
  std::size_t order_ = 0;
};

}  // namespace mylos::parallel
