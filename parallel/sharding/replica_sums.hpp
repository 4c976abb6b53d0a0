#pragma once

#include "core/parameter_store.hpp"
#include "parallel/sharding/sharding_strategy.hpp"
#include "parallel/sharding/unit_batch.hpp"

#include <span>
#include <string>
#include <vector>

/// Sums slices over the ranks that hold the same slices. In hybrid mode, this is the traffic between nodes.
namespace mylos::parallel {

/// Sums each unit's slice once per step, while other units still compute. Small slices are summed together, if the
/// communicator gains from it.
class ReplicaSums {
 public:
  /// `slices` are this rank's, for all units in order. `replicas` must outlive this object.
  ReplicaSums(const ModeSettings& settings, Communicator& replicas, const ParameterTable& table,
              std::span<const ParameterSlice> slices);
  ~ReplicaSums();
  ReplicaSums(const ReplicaSums&) = delete;
  ReplicaSums& operator=(const ReplicaSums&) = delete;

  /// Returns true if slices are exchanged as bfloat16. A single group exchanges nothing, and so rounds nothing.
  bool rounds() const { return rounds_; }
  /// Starts to sum a unit's slice, immediately or together with slices that follow. If rounds() is true, the slice is
  /// sent from `rounded`, which must have as many elements and is in use until finish(space, unit); otherwise it is
  /// sent from its own memory.
  void begin(const ExecutionSpace& space, std::size_t unit, const Vector<bfloat16>& rounded);
  /// Returns when the unit's slice holds its sum; immediately if no sum is under way.
  void finish(const ExecutionSpace& space, std::size_t unit);
  /// The same for all units. Each must have begun in this step.
  void finish(const ExecutionSpace& space);

 private:
  struct Sum {
    std::string what;
    Vector<float> slice;
    Vector<bfloat16> rounded = {};
    bool under_way = false;
    Event summed = {};  ///< of all slices that are summed together
  };

  void reduce(std::span<const std::size_t> units);

  Communicator& replicas_;
  std::size_t trained_;  ///< number of units with gradients
  bool rounds_;
  std::vector<Sum> sums_;  ///< one per unit
  UnitBatch batch_;        ///< units whose slices wait to be summed
  std::size_t begun_ = 0;  ///< number of sums begun in this step
  ExecutionSpace space_;
};

}  // namespace mylos::parallel
