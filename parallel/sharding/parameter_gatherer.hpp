#pragma once

#include "core/parameter_store.hpp"
#include "parallel/communicator/communicator.hpp"

#include <map>
#include <utility>
#include <vector>

/// Units of which each rank holds a slice: gathered before use, the next one while the present one computes.
namespace mylos::parallel {

/// rounded = a slice's master weights in `precision`, of which `rounded` holds the bytes.
void round_master_weights(const ExecutionSpace& space, const Vector<float>& master, Precision precision,
                          const Vector<std::byte>& rounded);

/// Memory for the few units that are whole at a time. Every rank acquires and releases the same units in the same
/// order.
class ParameterGatherer {
 public:
  /// Units are gathered from the `master_weights` of this rank's slices, one for each unit, over `ranks` into memory
  /// that `store`, which owns no values, is given. All outlive it. 16-bit values are rounded on their way: no rank
  /// keeps them.
  ParameterGatherer(Communicator& ranks, ParameterStore& store, std::vector<Vector<float>> master_weights);
  ~ParameterGatherer();
  ParameterGatherer(const ParameterGatherer&) = delete;
  ParameterGatherer& operator=(const ParameterGatherer&) = delete;

  const Vector<float>& master(std::size_t unit) const { return master_weights_[unit]; }
  /// The master weights have changed: what was gathered before is not used again.
  void invalidate();
  /// Begins to gather the unit that followed when the last one was last acquired after the same one, with those whose
  /// tensors it reads, as far as there is room.
  void prefetch(const ExecutionSpace& space);

  /// Returns when the unit, and those whose tensors it reads as well, are whole; the next one is then on its way.
  void acquire(const ExecutionSpace& space, std::size_t unit);
  void release(std::size_t unit);

 private:
  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

  /// Memory for one whole unit.
  struct Slot {
    Vector<std::byte> memory;
    std::size_t unit = nobody;
    Event gathered;
    std::size_t users = 0;  ///< acquired, not yet released
    std::size_t used = 0;   ///< when it was last acquired or chosen to be next
  };

  std::vector<std::size_t> needed_by(std::size_t unit) const;
  Slot* find(std::size_t unit);
  Slot& start_gathering(const ExecutionSpace& space, std::size_t unit);
  /// This rank's slice of a unit in the store's precision, in `whole` where it is rounded.
  Vector<std::byte> own_slice(const ExecutionSpace& space, std::size_t unit, const Vector<std::byte>& whole) const;

  Communicator& ranks_;
  ParameterStore& store_;
  std::vector<Vector<float>> master_weights_;
  std::vector<Slot> slots_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> followed_;  ///< (before, unit) -> what came next
  std::size_t before_ = nobody, last_ = nobody;                          ///< acquired last but one, and last
  std::size_t clock_ = 0;
};

}  // namespace mylos::parallel
