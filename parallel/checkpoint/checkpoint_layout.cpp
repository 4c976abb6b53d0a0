#include "parallel/checkpoint/checkpoint_layout.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace mylos::parallel {
namespace {

void cut(std::vector<WrittenRange>& ranges, std::size_t begin, std::size_t end, std::size_t owner) {
  for (std::size_t first = begin; first < end; first += checksum_elements) {
    ranges.push_back({first, std::min(checksum_elements, end - first), owner});
  }
}

/// Returns the ranges of a unit that ranks save, with their ranks, in the order of elements.
std::vector<WrittenRange> owners_of(const CheckpointArrays& arrays, std::size_t unit, std::size_t ranks) {
  std::vector<WrittenRange> written;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const UnitRange range = arrays.saved_range(unit, rank);
    if (range.begin < range.end) written.push_back({range.begin, range.end - range.begin, rank});
  }
  std::ranges::sort(written, {}, &WrittenRange::first);
  std::size_t next = 0;
  for (const WrittenRange& range : written) {
    require(range.first == next, fmt::format("checkpoint: rank {} writes unit {} from element {}, expected {}",
                                             range.owner, unit, range.first, next));
    next += range.count;
  }
  require(next == arrays.table->units()[unit].size,
          fmt::format("checkpoint: ranks write {} elements of unit {}, which has {}", next, unit,
                      arrays.table->units()[unit].size));
  return written;
}

}  // namespace

std::vector<PlannedDataset> plan_datasets(const CheckpointArrays& arrays) {
  std::vector<PlannedDataset> datasets;
  for (std::size_t group = 0; group < arrays.groups.size(); ++group) {
    for (const ParameterTensor& tensor : arrays.table->tensors()) {
      // Frozen tensors have no optimizer state, and beside adapters the values of a model elsewhere.
      if (!tensor.group.trainable && (group > 0 || arrays.table->is_adapted())) continue;
      datasets.push_back({.shape = {fmt::format("/{}/{}", arrays.groups[group].name, tensor.name), tensor.shape},
                          .tensor = &tensor,
                          .group = group});
    }
  }
  const std::span<const ParameterTensor> states = arrays.table->state_tensors();
  require(arrays.state.size() == states.size(),
          fmt::format("checkpoint: {} state tensors for {}", arrays.state.size(), states.size()));
  for (std::size_t i = 0; i < states.size(); ++i) {
    datasets.push_back(
        {.shape = {"/state/" + states[i].name, states[i].shape}, .tensor = &states[i], .state_tensor = i});
  }
  return datasets;
}

std::vector<WrittenRange> written_ranges(const CheckpointArrays& arrays, const PlannedDataset& dataset,
                                         std::size_t ranks) {
  std::vector<WrittenRange> ranges;
  const ParameterTensor& tensor = *dataset.tensor;
  if (!dataset.group) {
    cut(ranges, 0, tensor.size, 0);
    return ranges;
  }
  for (const WrittenRange& whole : owners_of(arrays, tensor.unit, ranks)) {
    const std::size_t begin = std::max(whole.first, tensor.offset);
    const std::size_t end = std::min(whole.first + whole.count, tensor.offset + tensor.size);
    if (begin < end) cut(ranges, begin - tensor.offset, end - tensor.offset, whole.owner);
  }
  return ranges;
}

std::vector<WrittenChunk> cut_into_chunks(std::span<const WrittenRange> ranges,
                                          std::span<const std::size_t> writer_of) {
  std::vector<WrittenChunk> chunks;
  if (ranges.empty()) return chunks;
  const std::size_t end = ranges.back().first + ranges.back().count;
  for (std::size_t begin = 0; begin < ranges.size();) {
    const std::size_t first = ranges[begin].first;
    std::size_t next = begin + 1;
    // A chunk takes the rest of the array unless the rest is long enough for another chunk.
    const auto is_whole = [&] {
      const std::size_t reached = next < ranges.size() ? ranges[next].first : end;
      return reached == end || (reached - first >= written_elements && end - reached >= written_elements);
    };
    while (!is_whole()) ++next;
    const std::size_t chunk_end = next < ranges.size() ? ranges[next].first : end;
    const auto parts = ranges.subspan(begin, next - begin);
    const auto middle =
        std::prev(std::ranges::upper_bound(parts, first + (chunk_end - first) / 2, {}, &WrittenRange::first));
    chunks.push_back({parts, writer_of[middle->owner]});
    begin = next;
  }
  return chunks;
}

std::vector<HeldPart> held_parts(const CheckpointArrays& arrays, const PlannedDataset& dataset) {
  const ParameterTensor& tensor = *dataset.tensor;
  if (!dataset.group) return {{0, tensor.size, arrays.state[dataset.state_tensor]}};
  const CheckpointGroup& group = arrays.groups[*dataset.group];
  require(group.parts.size() == arrays.held.size(), fmt::format("checkpoint: {} parts of {} for {} held ranges",
                                                                group.parts.size(), group.name, arrays.held.size()));
  std::vector<HeldPart> parts;
  for (std::size_t i = 0; i < arrays.held.size(); ++i) {
    const HeldRange& held = arrays.held[i];
    const std::size_t begin = std::max(held.begin, tensor.offset),
                      end = std::min(held.end, tensor.offset + tensor.size);
    if (held.unit != tensor.unit || begin >= end) continue;
    parts.push_back(
        {begin - tensor.offset, end - tensor.offset, slice(group.parts[i], begin - held.begin, end - held.begin)});
  }
  return parts;
}

}  // namespace mylos::parallel
