#pragma once

#include "core/parameter_store.hpp"
#include "parallel/sharding/parameter_mode.hpp"
#include "parallel/sharding/tree_sum.hpp"

#include <span>
#include <vector>

/// Gradients of which each rank keeps a slice: a micro-batch's are summed over ranks unit by unit, while the next
/// units' backward pass computes, and added to the slice.
namespace mylos::parallel {

/// Memory for the units whose gradients are under way: one is written while another is summed.
class UnitGradients {
 public:
  /// `slices` are this rank's, of all units in order; `store` owns no gradients. All outlive it.
  UnitGradients(const ModeSettings& settings, Mesh& mesh, ParameterStore& store,
                std::span<const ParameterSlice> slices);
  ~UnitGradients();
  UnitGradients(const UnitGradients&) = delete;
  UnitGradients& operator=(const UnitGradients&) = delete;

  void begin_step(const ExecutionSpace& space);
  /// The unit's gradients of a micro-batch are complete on this rank.
  void reduce(std::size_t unit);
  /// Returns when the slices are the sums over ranks and micro-batches, over all groups that hold the same ones.
  void finish(const ExecutionSpace& space);

 private:
  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

  struct Place {
    Vector<float> memory;
    Vector<bfloat16> rounded;   ///< where that is exchanged
    std::size_t unit = nobody;  ///< written or summed
    bool summing = false;
    std::size_t order = 0;  ///< of the sums that were begun
    Event summed;
  };

  Vector<float> take(std::size_t unit);
  Place& oldest();
  Vector<float> part_of(const Place& place) const;
  void accumulate(const ExecutionSpace& space, Place& place);

  Communicator& ranks_;     ///< that split the units
  Communicator& replicas_;  ///< that hold the same slices
  ParameterStore& store_;
  std::vector<ParameterSlice> slices_;
  std::vector<Place> places_;
  std::vector<bool> has_begun_;     ///< of each unit: its slice holds a micro-batch's sum of this step
  std::vector<TreeSum> tree_sums_;  ///< of each unit, or none
  ExecutionSpace space_;
  std::size_t order_ = 0;
};

}  // namespace mylos::parallel
