#pragma once

#include "core/batch.hpp"
#include "train/engine/sample_stream.hpp"

#include <cstddef>
#include <span>

/// How a step is cut into what is computed at once. Losses and gradients do not depend on it, but for rounding.
namespace mylos::train {

/// What a micro-batch may have; 0 = any number.
struct MicroBatchLimit {
  std::size_t samples = 0;
  std::size_t tokens = 0;  ///< rows of all its samples together
  /// Or how many a rank makes of its samples of a step, whatever they have: one of each sample where it has fewer.
  std::size_t parts = 0;
};

/// Where the micro-batch that begins at samples[begin] ends: it has as many of the samples, in order, as the limit
/// allows, and at least one. With parts, which differ by one sample at most: `begin` is where one of them begins.
std::size_t micro_batch_end(const SampleStream& stream, std::span<const std::size_t> samples, std::size_t begin,
                            const MicroBatchLimit& limit);

}  // namespace mylos::train
