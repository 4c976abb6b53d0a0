#pragma once

#include "core/parameter_store.hpp"
#include "nn/model.hpp"
#include "train/task.hpp"
#include "train/train_config.hpp"

/// What a run will take, counted before it begins.
namespace mylos::train {

struct MemoryPlan {
  std::size_t values = 0;  ///< bytes of parameters in the compute type, and float masters beside 16-bit ones
  std::size_t gradients = 0;
  std::size_t optimizer = 0;    ///< slots
  std::size_t activations = 0;  ///< the arena
  std::size_t micro_batch = 0;  ///< samples at once
  BatchShape largest;           ///< of the micro-batches of the run

  std::size_t total() const { return values + gradients + optimizer + activations; }
};

/// Bytes of memory that this process may still take: what the machine has free, or its control group if that is less.
std::size_t available_memory();

/// Bytes of this process that are resident now, and the most there have been.
std::size_t resident_memory();
std::size_t peak_resident_memory();

/// The largest micro-batch, in rows, samples and longest sample, over steps [0, steps): each in its own step. For a run
/// of very many epochs a bound of it.
BatchShape largest_micro_batch(const Task& task, std::size_t steps, std::size_t micro_batch);

/// The plan for `steps` steps. With micro_batch 0 the largest that fits into `available` bytes is taken, by halving.
/// Errors: std::runtime_error with the parts if it does not fit.
MemoryPlan plan_memory(const Task& task, const TrainConfig& config, std::size_t steps, std::size_t available);

/// Samples in the largest global batch of steps [0, steps).
std::size_t largest_global_batch(const Task& task, std::size_t steps);

}  // namespace mylos::train
