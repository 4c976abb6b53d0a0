#pragma once

#include "train/engine/samples/step_assignment.hpp"
#include "train/engine/train_config.hpp"

#include <cstddef>
#include <vector>

/// Upper bounds over all steps of a run, for allocating memory before step 1.
namespace mylos::train {

/// Returns the number of steps of a run: the configured number, or that of the configured epochs.
std::size_t total_steps(const TrainConfig& config, const SampleStream& stream);

/// Returns the samples of the largest global batch in steps [0, steps).
std::size_t largest_global_batch(const SampleStream& stream, std::size_t steps);

/// Returns the rows of the longest sample in steps [0, steps).
std::size_t longest_sample(const SampleStream& stream, std::size_t steps);

/// Maxima over steps and ranks, each taken independently.
struct MicroBatchBounds {
  BatchShape largest;             ///< most rows, most samples and longest sample of a micro-batch
  std::size_t micro_batches = 0;  ///< most micro-batches per step and rank
};

/// Returns the maxima over steps [0, steps). For a run of very many epochs, returns an upper bound of the maxima.
MicroBatchBounds bound_micro_batches(const SampleStream& stream, std::size_t steps, const MicroBatchLimit& limit,
                                     const StepSplit& split);
/// Returns the micro-batches of `rank` in steps [0, steps) that differ in samples or in the longest sample, the most
/// frequent first; each has the most rows of those that do not.
std::vector<BatchShape> distinct_micro_batches(const SampleStream& stream, std::size_t steps,
                                               const MicroBatchLimit& limit, const StepSplit& split, std::size_t rank);
/// Returns the largest micro-batch for a single rank.
BatchShape largest_micro_batch(const SampleStream& stream, std::size_t steps, const MicroBatchLimit& limit);

}  // namespace mylos::train
