#pragma once

#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"

#include <cstddef>
#include <optional>
#include <vector>

/// What stands where in a checkpoint: a pure function of the parameters and of who writes what.
namespace mylos::parallel {

/// A dataset: a row of a group, or of the state.
struct PlannedDataset {
  DatasetShape shape;
  const ParameterRow* row = nullptr;
  std::optional<std::size_t> group = {};  ///< of CheckpointArrays; nothing for a state row
  std::size_t state_row = 0;
};

/// Without ranges.
std::vector<PlannedDataset> plan_datasets(const CheckpointArrays& arrays);

/// Elements [first, first + count) of a row that one rank writes, with one checksum.
struct WrittenRange {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t writer = 0;  ///< rank
};
/// The ranges of a row, in order, cut where the ranks' ranges end and after checksum_elements; a state row is rank 0's.
/// Errors: std::invalid_argument where the ranks' ranges are not disjoint or leave elements out.
std::vector<WrittenRange> written_ranges(const CheckpointArrays& arrays, const PlannedDataset& dataset,
                                         std::size_t ranks);

/// Elements [begin, end) of a row that a held range has, and where they begin in it.
struct HeldPart {
  std::size_t begin = 0;
  std::size_t end = 0;
  Vector<float> values;
};
/// What this rank holds of a dataset.
std::vector<HeldPart> held_parts(const CheckpointArrays& arrays, const PlannedDataset& dataset);

}  // namespace mylos::parallel
