#pragma once

#include "core/parameter_store.hpp"
#include "core/unit_schedule.hpp"

#include <memory>
#include <span>

/// How parameters, gradients and optimizer state are spread over ranks. The trainer sees only this.
namespace mylos::parallel {

/// One way of spreading. Every call is collective: all ranks make it, in the same order.
class ParameterMode {
 public:
  virtual ~ParameterMode() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t ranks() const = 0;
  /// Sums over ranks, the same bits on each.
  virtual double sum(double value) const = 0;

  /// What the model tells its units to.
  virtual UnitSchedule& schedule() = 0;
  /// The slices of all units that this rank updates, in the order of units.
  virtual std::span<const ParameterSlice> slices() const = 0;

  /// A step begins: gradients count from zero (ParameterStore::begin_gradients).
  virtual void begin_step(const ExecutionSpace& space) = 0;
  /// A micro-batch's pass begins; after the `last` one of a step what `gradients_ready` tells is complete on this rank.
  virtual void begin_micro_batch(bool last) = 0;
  /// Returns when the gradient of every slice is the sum over ranks and micro-batches.
  virtual void finish_gradients(const ExecutionSpace& space) = 0;
  /// Makes the store's values from the masters, in the compute type.
  virtual void publish_values(const ExecutionSpace& space) = 0;

  /// Master values of a row from its element `first` on, on the host of every rank.
  virtual void read_row(std::size_t row, std::size_t first, std::span<float> values) const = 0;
  /// Sets them; `publish_values` makes them seen.
  virtual void write_row(std::size_t row, std::span<const float> values) = 0;
};

/// Everything whole in one process. Masters are the store's own values where those are float.
std::unique_ptr<ParameterMode> make_single_process_mode(ParameterStore& store);

}  // namespace mylos::parallel
