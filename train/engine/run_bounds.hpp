#pragma once

#include "train/engine/step_assignment.hpp"
#include "train/engine/train_config.hpp"

#include <cstddef>

/// What no step of a run exceeds: memory is taken for it before step 1.
namespace mylos::train {

/// Steps of a run: those it is told, or those of its epochs.
std::size_t total_steps(const TrainConfig& config, const SampleStream& stream);

/// Samples in the largest global batch of steps [0, steps).
std::size_t largest_global_batch(const SampleStream& stream, std::size_t steps);

/// Of the steps and ranks of a run; each in its own step and on its own rank.
struct MicroBatchBounds {
  BatchShape largest;             ///< the most rows, samples and longest sample of a micro-batch
  std::size_t micro_batches = 0;  ///< the most of a step on a rank
};

/// Over steps [0, steps); for a run of very many epochs a bound of it.
MicroBatchBounds bound_micro_batches(const SampleStream& stream, std::size_t steps, const MicroBatchLimit& limit,
                                     const StepSplit& split);
/// Its shape on one rank.
BatchShape largest_micro_batch(const SampleStream& stream, std::size_t steps, const MicroBatchLimit& limit);

}  // namespace mylos::train
