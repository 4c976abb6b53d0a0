#pragma once

#include "core/parameter_store.hpp"
#include "parallel/sharding/sharding_strategy.hpp"

#include <span>
#include <string>
#include <vector>

/// Sums of slices over the groups of ranks that hold the same ones: in hybrid mode, what the network between nodes
/// carries.
namespace mylos::parallel {

/// Sums each unit's slice once a step, while other units still compute.
class ReplicaSums {
 public:
  /// `slices` are this rank's, of all units in order; `replicas` outlives this.
  ReplicaSums(const ModeSettings& settings, Communicator& replicas, const ParameterTable& table,
              std::span<const ParameterSlice> slices);
  ~ReplicaSums();
  ReplicaSums(const ReplicaSums&) = delete;
  ReplicaSums& operator=(const ReplicaSums&) = delete;

  /// Whether slices travel as bfloat16. A single group exchanges nothing, so nothing is rounded there.
  bool rounds() const { return rounds_; }
  /// Begins to sum a unit's slice. If rounds(), the slice travels in `rounded`, memory of as many elements, which is in
  /// use until finish(space, unit); otherwise in its own memory.
  void begin(const ExecutionSpace& space, std::size_t unit, const Vector<bfloat16>& rounded);
  /// Returns when the unit's slice is its sum; at once where no sum of it is under way.
  void finish(const ExecutionSpace& space, std::size_t unit);
  /// The same of all units, each of which must have begun in this step.
  void finish(const ExecutionSpace& space);

 private:
  struct Sum {
    std::string what;
    Vector<float> slice;
    Vector<bfloat16> rounded = {};
    bool under_way = false;
    Event summed = {};
  };

  Communicator& replicas_;
  bool rounds_;
  std::vector<Sum> sums_;  ///< of each unit
  std::size_t begun_ = 0;  ///< in this step
};

}  // namespace mylos::parallel
