#pragma once

#include "core/batch.hpp"
#include "train/engine/samples/sample_stream.hpp"

#include <cstddef>
#include <span>

/// Splits a step into micro-batches. Up to rounding, losses and gradients do not depend on the split.
namespace mylos::train {

/// Limits of a micro-batch; 0 = no limit.
struct MicroBatchLimit {
  std::size_t samples = 0;
  std::size_t tokens = 0;  ///< rows of all its samples
  /// If not 0, the number of micro-batches of a rank per step, at most one per sample. The other limits are then
  /// ignored.
  std::size_t parts = 0;
};

/// Returns the end of the micro-batch that begins at samples[begin]. It takes as many samples, in order, as the limit
/// allows, and at least one. With `parts`, sizes differ by at most one sample, and `begin` must be the start of a part.
std::size_t micro_batch_end(const SampleStream& stream, std::span<const std::size_t> samples, std::size_t begin,
                            const MicroBatchLimit& limit);

}  // namespace mylos::train
