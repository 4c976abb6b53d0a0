#pragma once

#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

/// The layout of a checkpoint, a pure function of the parameters and of the assignment of data to writing ranks.
namespace mylos::parallel {

/// A dataset: a tensor of a group, or a state tensor.
struct PlannedDataset {
  DatasetShape shape;
  const ParameterTensor* tensor = nullptr;
  std::optional<std::size_t> group = {};  ///< index in CheckpointArrays::groups; nullopt for a state tensor
  std::size_t state_tensor = 0;

  /// Returns whether these are the values of a frozen tensor.
  bool is_frozen() const { return group && !tensor->group.trainable; }
};

/// Returns all datasets, without their ranges.
std::vector<PlannedDataset> plan_datasets(const CheckpointArrays& arrays);

/// Elements [first, first + count) of a tensor that one rank saves, with one checksum.
struct WrittenRange {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t owner = 0;  ///< the rank that holds them
};
/// Returns the ranges of a tensor in order. They are cut where the ranks' ranges end, and after checksum_elements; rank
/// 0 saves state tensors. Errors: std::invalid_argument if the ranks' ranges overlap or leave elements out.
std::vector<WrittenRange> written_ranges(const CheckpointArrays& arrays, const PlannedDataset& dataset,
                                         std::size_t ranks);

/// Minimum number of elements per write, if the tensor has as many: 4 MiB.
inline constexpr std::size_t written_elements = 4 * checksum_elements;
/// Maximum number of elements in a WrittenChunk.
inline constexpr std::size_t chunk_elements = 2 * written_elements + checksum_elements;

/// Adjacent ranges of a tensor that one rank writes in one call.
struct WrittenChunk {
  std::span<const WrittenRange> ranges;
  std::size_t writer = 0;  ///< rank that writes the chunk

  std::size_t first() const { return ranges.front().first; }
  std::size_t count() const { return ranges.back().first + ranges.back().count - first(); }
};
/// Cuts the ranges of a tensor into chunks of at least written_elements, or one chunk if the tensor is shorter. A chunk
/// is written by the writer of the rank that owns its middle.
std::vector<WrittenChunk> cut_into_chunks(std::span<const WrittenRange> ranges, std::span<const std::size_t> writer_of);

/// Elements [begin, end) of a tensor that are in a held range, with their values.
struct HeldPart {
  std::size_t begin = 0;
  std::size_t end = 0;
  Vector<float> values;
};
/// Returns the parts of a dataset that this rank holds.
std::vector<HeldPart> held_parts(const CheckpointArrays& arrays, const PlannedDataset& dataset);

}  // namespace mylos::parallel
