#pragma once

#include "parallel/sharding/value_policy.hpp"

#include <cstddef>
#include <memory>
#include <span>

/// When a strategy sums the gradients of units over ranks. A policy decides and holds no memory: a run carries out its
/// decisions on arrays (unit_arrays.hpp), and a plan records them.
namespace mylos::parallel {

/// Carries out the decisions of a policy of gradients.
class GradientWork {
 public:
  virtual ~GradientWork() = default;
  /// Begins to sum the gradients of units over ranks, all in one call of Communicator. A place is memory of a unit, or
  /// stands for those that are summed together.
  virtual void sum(std::span<const std::size_t> units, std::size_t place) = 0;
  /// Returns when the sum at a place has ended. Sharded gradients are then added to their slice.
  virtual void finish_sum(std::size_t place) = 0;
  /// Begins to sum slices over the ranks that hold the same, all in one call. If they are rounded, the places' memory
  /// is in use until finish_slices.
  virtual void sum_slices(std::span<const PlacedUnit> units) = 0;
  /// Returns when the slices hold their sums.
  virtual void finish_slices(std::span<const std::size_t> units) = 0;
};

class GradientPolicy {
 public:
  virtual ~GradientPolicy() = default;
  void begin_micro_batch(bool last) { is_last_ = last; }
  /// Returns the place of a unit whose gradients are about to be written. Whole ones have a place each.
  virtual std::size_t take(std::size_t unit) { return unit; }
  /// Called when the unit's gradients of a micro-batch are complete on this rank.
  virtual void ready(std::size_t unit) = 0;
  /// Returns when the gradients of a step are summed.
  virtual void finish() = 0;

 protected:
  bool is_last() const { return is_last_; }

 private:
  bool is_last_ = false;  ///< the current micro-batch is the last of the step
};

/// The smallest exchanges of gradients and of slices, see Communicator::least_sum_bytes.
struct LeastSums {
  std::size_t gradients = 0, slices = 0;
};

/// Returns the policy of a mode. The arguments must outlive it.
std::unique_ptr<GradientPolicy> make_gradient_policy(const UnitExchanges& exchanges, GradientWork& work,
                                                     LeastSums least);

}  // namespace mylos::parallel
