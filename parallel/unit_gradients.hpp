#pragma once

#include "core/parameter_store.hpp"
#include "parallel/communicator.hpp"
#include "parallel/tree_sum.hpp"

#include <optional>
#include <vector>

/// Gradients of which each rank keeps a slice: a micro-batch's are summed over ranks unit by unit, while the next
/// units' backward pass computes, and added to the slice.
namespace mylos::parallel {

/// What is summed, and where to.
struct ReductionSettings {
  bool bfloat16 = false;          ///< exchanged rounded
  bool tree_sums = false;         ///< see ModeSettings
  std::size_t micro_batches = 1;  ///< see ModeSettings
};

/// Memory for the units whose gradients are under way: one is written while another is summed.
class UnitGradients {
 public:
  /// `slices` are this rank's, of all units in order; `store` owns no gradients. All outlive it.
  UnitGradients(Communicator& ranks, ParameterStore& store, std::span<const ParameterSlice> slices,
                const ReductionSettings& settings);
  ~UnitGradients();
  UnitGradients(const UnitGradients&) = delete;
  UnitGradients& operator=(const UnitGradients&) = delete;

  void begin_step();
  /// The unit's gradients of a micro-batch are complete on this rank.
  void reduce(const ExecutionSpace& space, std::size_t unit);
  /// Returns when all that was given is in the slices.
  void finish(const ExecutionSpace& space);

  /// Whole units that `table` asks memory for at a time.
  static std::size_t places(const ParameterTable& table);

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

  Communicator& ranks_;
  ParameterStore& store_;
  std::vector<ParameterSlice> slices_;
  std::vector<Place> places_;
  std::vector<bool> has_begun_;     ///< of each unit: its slice holds a micro-batch's sum of this step
  std::vector<TreeSum> tree_sums_;  ///< of each unit, or none
  ExecutionSpace space_;
  std::size_t order_ = 0;
};

}  // namespace mylos::parallel
