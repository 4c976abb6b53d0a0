#pragma once

#include "core/parameter_store.hpp"
#include "parallel/launch/launch.hpp"
#include "parallel/sharding/gradient_policy.hpp"
#include "parallel/sharding/tree_sum.hpp"
#include "parallel/sharding/value_policy.hpp"

#include <vector>

namespace mylos::parallel {

/// The values of units in a run, gathered from this rank's slices: in the store's memory, or, if it owns no values, in
/// memory for the few units that are complete at a time. 16-bit values are rounded before they are sent, unless an
/// update has rounded them.
class ValueArrays final : public ValueWork {
 public:
  /// `slices` are this rank's, for all units in order, when work begins. All arguments must outlive this object.
  ValueArrays(const UnitExchanges& exchanges, Communicator& ranks, ParameterStore& store,
              const std::vector<ParameterSlice>& slices);
  ~ValueArrays() override;
  ValueArrays(const ValueArrays&) = delete;
  ValueArrays& operator=(const ValueArrays&) = delete;

  /// Sets the space of later work.
  void launch_on(const ExecutionSpace& space) { space_ = space; }

  void gather(std::span<const PlacedUnit> units) override;
  void complete(PlacedUnit unit) override;
  void give_way(PlacedUnit unit) override;
  void discard(PlacedUnit unit) override;

 private:
  struct Place {
    Vector<std::byte> memory;  ///< for a whole unit and its rest; empty if the store owns values
    Event gathered;            ///< of all units that were gathered together
  };
  /// A unit or its rest, and where its values are gathered.
  struct Part {
    std::size_t unit = 0;
    Vector<std::byte> values;
  };

  std::vector<Part> parts(PlacedUnit placed) const;
  void take_from_model(PlacedUnit placed);
  std::byte* own_slice(const Part& part);

  const UnitExchanges& exchanges_;
  Communicator& ranks_;
  ParameterStore& store_;
  const std::vector<ParameterSlice>& slices_;
  bool owned_;  ///< the store owns the values
  std::vector<Place> places_;
  ExecutionSpace space_;
};

/// Returns the ranks that make a call.
Communicator& group_of(Mesh& mesh, const CollectiveCall& call);

/// The gradients of units in a run: whole ones in the store's memory, or, if it owns none, in memory for the few units
/// that are written or summed at a time, from which they are added to this rank's slices.
class GradientArrays final : public GradientWork {
 public:
  /// `slices` are this rank's, for all units in order. `store` is for training. All arguments must outlive this object.
  GradientArrays(const UnitExchanges& exchanges, Mesh& mesh, ParameterStore& store,
                 const std::vector<ParameterSlice>& slices);
  ~GradientArrays() override;
  GradientArrays(const GradientArrays&) = delete;
  GradientArrays& operator=(const GradientArrays&) = delete;

  void begin_step(const ExecutionSpace& space);
  void begin_micro_batch(bool last);
  /// Returns the memory for a unit's gradients at a place.
  Vector<float> memory(PlacedUnit placed) const;
  /// Called before the policy hears that the unit's gradients of the micro-batch are complete on this rank.
  void end_writing(std::size_t unit);

  void sum(std::span<const std::size_t> units, std::size_t place) override;
  void finish_sum(std::size_t place) override;
  void sum_slices(std::span<const PlacedUnit> units) override;
  void finish_slices(std::span<const std::size_t> units) override;

 private:
  struct Place {
    Vector<float> memory;      ///< empty if the store owns gradients
    Vector<bfloat16> rounded;  ///< empty unless gradients are exchanged in bfloat16
    std::size_t unit = 0;      ///< the first that is summed here
    Event summed;              ///< of all units that are summed together
  };
  struct SliceSum {
    Vector<bfloat16> rounded;  ///< empty unless slices are rounded
    Event summed;              ///< of all slices that are summed together
  };

  template <class T>
  Vector<T> part_of(std::size_t unit, const Vector<T>& whole) const;
  void add_to_slice(const Place& place);

  const UnitExchanges& exchanges_;
  Mesh& mesh_;
  ParameterStore& store_;
  const std::vector<ParameterSlice>& slices_;
  bool owned_;  ///< the store owns the gradients
  std::vector<Place> places_;
  std::vector<SliceSum> slice_sums_;  ///< by unit
  std::vector<TreeSum> tree_sums_;    ///< by unit, or empty
  std::vector<bool> has_begun_;       ///< by unit: its slice holds a sum of this step
  bool is_last_ = false;
  ExecutionSpace space_;
};

}  // namespace mylos::parallel
