#pragma once

#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

/// What stands where in a checkpoint: a pure function of the parameters and of who writes what.
namespace mylos::parallel {

/// A dataset: a tensor of a group, or of the state.
struct PlannedDataset {
  DatasetShape shape;
  const ParameterTensor* tensor = nullptr;
  std::optional<std::size_t> group = {};  ///< of CheckpointArrays; nothing for a state tensor
  std::size_t state_tensor = 0;
};

/// Without ranges.
std::vector<PlannedDataset> plan_datasets(const CheckpointArrays& arrays);

/// Elements [first, first + count) of a tensor that one rank saves, with one checksum.
struct WrittenRange {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t owner = 0;  ///< the rank that has them
};
/// The ranges of a tensor, in order, cut where the ranks' ranges end and after checksum_elements; a state tensor is
/// rank 0's. Errors: std::invalid_argument where the ranks' ranges are not disjoint or leave elements out.
std::vector<WrittenRange> written_ranges(const CheckpointArrays& arrays, const PlannedDataset& dataset,
                                         std::size_t ranks);

/// Elements that are written with one call, where the tensor has as many: 4 MiB.
inline constexpr std::size_t written_elements = 4 * checksum_elements;
/// Elements of a WrittenChunk at most.
inline constexpr std::size_t chunk_elements = 2 * written_elements + checksum_elements;

/// Neighbouring ranges of a tensor that one rank writes with one call.
struct WrittenChunk {
  std::span<const WrittenRange> ranges;
  std::size_t writer = 0;  ///< rank

  std::size_t first() const { return ranges.front().first; }
  std::size_t count() const { return ranges.back().first + ranges.back().count - first(); }
};
/// Cuts the ranges of a tensor into chunks of at least written_elements, or one chunk if the tensor is shorter. A chunk
/// is written by the writer of the rank that has its middle.
std::vector<WrittenChunk> cut_into_chunks(std::span<const WrittenRange> ranges, std::span<const std::size_t> writer_of);

/// Elements [begin, end) of a tensor that a held range has, and where they begin in it.
struct HeldPart {
  std::size_t begin = 0;
  std::size_t end = 0;
  Vector<float> values;
};
/// What this rank holds of a dataset.
std::vector<HeldPart> held_parts(const CheckpointArrays& arrays, const PlannedDataset& dataset);

}  // namespace mylos::parallel
