#pragma once

#include "core/parameter_store.hpp"
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

}  // namespace mylos::parallel
