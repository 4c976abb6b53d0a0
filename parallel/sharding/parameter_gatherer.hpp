#pragma once

#include "core/parameter_store.hpp"
#include "parallel/communicator/communicator.hpp"
#include "parallel/sharding/unit_slots.hpp"

#include <span>
#include <vector>

/// Gathers sharded units before they are used. The next unit is gathered while the current one computes.
namespace mylos::parallel {

/// Computes rounded = master weights of a slice in `precision`; `rounded` has the size of the result in bytes.
void round_master_weights(const ExecutionSpace& space, const Vector<float>& master, Precision precision,
                          const Vector<std::byte>& rounded);

/// Memory for the few units that are complete at a time. Every rank must acquire and release the same units in the same
/// order. A unit and the units whose tensors it reads are gathered in one call of Communicator.
class ParameterGatherer {
 public:
  /// Units are gathered over `ranks` from `master_weights`, which has this rank's slice of each unit, into memory that
  /// is given to `store`. `store` must own no values. All arguments must outlive this object. 16-bit values are rounded
  /// before they are sent, and not kept.
  ParameterGatherer(Communicator& ranks, ParameterStore& store, std::vector<Vector<float>> master_weights);
  ~ParameterGatherer();
  ParameterGatherer(const ParameterGatherer&) = delete;
  ParameterGatherer& operator=(const ParameterGatherer&) = delete;

  const Vector<float>& master(std::size_t unit) const { return master_weights_[unit]; }
  /// Discards the gathered units whose master weights have changed.
  void invalidate(const ExecutionSpace& space, ChangedUnits changed);
  /// Starts to gather the unit that is expected next, together with the units whose tensors it reads, as far as there
  /// is free memory. The expected unit is the one that followed the last two acquired units the last time.
  void prefetch(const ExecutionSpace& space);

  /// Returns when the unit, and the units whose tensors it reads, are complete. The next unit is then being gathered.
  void acquire(const ExecutionSpace& space, std::size_t unit);
  void release(std::size_t unit);

 private:
  /// Memory for one whole unit and its rest.
  struct Memory {
    Vector<std::byte> bytes;
    Event gathered;  ///< of all units that were gathered together
  };

  /// A unit or its rest, and where its values are gathered.
  struct Part {
    std::size_t unit = 0;
    Vector<std::byte> values;
  };

  std::vector<Part> parts(std::size_t slot) const;
  void take_values(std::size_t slot);
  UnitSlots::Discard discard(const ExecutionSpace& space);
  void gather(const ExecutionSpace& space, std::span<const std::size_t> slots);
  /// Returns this rank's slice of a unit in the store's precision. If rounding is needed, the slice is stored in
  /// `whole`.
  Vector<std::byte> own_slice(const ExecutionSpace& space, std::size_t unit, const Vector<std::byte>& whole) const;

  Communicator& ranks_;
  ParameterStore& store_;
  std::vector<Vector<float>> master_weights_;
  UnitSlots slots_;
  std::vector<Memory> memory_;  ///< by slot
};

}  // namespace mylos::parallel
