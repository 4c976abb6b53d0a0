#include "train/engine/samples/step_assignment.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace mylos::train {
namespace {

/// Returns the positions of each rank, balanced by rows.
std::vector<Positions> balanced_positions(const SampleStream& stream, std::span<const std::size_t> samples,
                                          std::size_t ranks) {
  Positions by_length(samples.size());
  std::iota(by_length.begin(), by_length.end(), std::size_t{0});
  std::ranges::stable_sort(by_length, std::greater<>(),
                           [&](std::size_t position) { return stream.rows_of(samples[position]); });
  using Load = std::pair<std::size_t, std::size_t>;  // rows, rank
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::size_t rank = 0; rank < ranks; ++rank) loads.emplace(0, rank);
  std::vector<Positions> positions(ranks);
  for (const std::size_t position : by_length) {
    const auto [rows, rank] = loads.top();
    loads.pop();
    positions[rank].push_back(position);
    loads.emplace(rows + stream.rows_of(samples[position]), rank);
  }
  for (Positions& own : positions) std::ranges::sort(own);
  return positions;
}

std::vector<Positions> cut(const SampleStream& stream, std::span<const std::size_t> samples, const Positions& positions,
                           const MicroBatchLimit& limit) {
  std::vector<std::size_t> own;
  for (const std::size_t position : positions) own.push_back(samples[position]);
  std::vector<Positions> micro_batches;
  for (std::size_t begin = 0, end = 0; begin < own.size(); begin = end) {
    end = micro_batch_end(stream, own, begin, limit);
    micro_batches.emplace_back(positions.begin() + static_cast<std::ptrdiff_t>(begin),
                               positions.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return micro_batches;
}

/// Orders the samples of each micro-batch by length. Those of equal length keep their order.
void order_longest_first(const SampleStream& stream, std::span<const std::size_t> samples, StepAssignment& assignment) {
  for (std::vector<Positions>& own : assignment.ranks) {
    for (Positions& positions : own) {
      std::ranges::stable_sort(positions, std::greater<>(),
                               [&](std::size_t position) { return stream.rows_of(samples[position]); });
    }
  }
}

Positions group_positions(std::size_t group, std::size_t micro_batch_groups, std::size_t samples) {
  Positions positions((group + 1) * samples / micro_batch_groups - group * samples / micro_batch_groups);
  std::iota(positions.begin(), positions.end(), group * samples / micro_batch_groups);
  return positions;
}

using MicroBatchesOfRanks = std::vector<std::vector<Positions>>;

MicroBatchesOfRanks grouped_micro_batches(std::size_t samples, const StepSplit& split) {
  MicroBatchesOfRanks ranks(split.ranks);
  for (std::size_t rank = 0; rank < split.ranks; ++rank) {
    for (std::size_t round = 0; round < split.micro_batch_groups / split.ranks; ++round) {
      ranks[rank].push_back(group_positions(group_of_round(split, rank, round), split.micro_batch_groups, samples));
    }
  }
  return ranks;
}

MicroBatchesOfRanks balanced_micro_batches(const SampleStream& stream, std::span<const std::size_t> samples,
                                           const MicroBatchLimit& limit, std::size_t count) {
  MicroBatchesOfRanks ranks;
  std::size_t most = 0;
  for (const Positions& positions : balanced_positions(stream, samples, count)) {
    ranks.push_back(cut(stream, samples, positions, limit));
    most = std::max(most, ranks.back().size());
  }
  for (std::vector<Positions>& own : ranks) own.resize(most);
  return ranks;
}

/// Returns the first end after `begin` when part i ends at i * size / parts; `parts` must be at most `size`.
std::size_t end_of_part(std::size_t size, std::size_t parts, std::size_t begin) {
  const std::size_t part = begin * parts / size + 1;
  const std::size_t end = part * size / parts;
  return end > begin ? end : (part + 1) * size / parts;
}

}  // namespace

std::size_t group_of_round(const StepSplit& split, std::size_t rank, std::size_t round) {
  const std::size_t together = split.reduced_together, groups = split.ranks / together;
  return rank / together * (split.micro_batch_groups / groups) + round * together + rank % together;
}

StepSplit without_idle_ranks(StepSplit split, std::size_t samples) {
  // Without micro-batch groups, the longest samples go one by one to ranks that have none yet.
  if (split.micro_batch_groups == 0) split.ranks = std::min(split.ranks, samples);
  return split;
}

StepAssignment assign_step(const SampleStream& stream, std::span<const std::size_t> samples,
                           const MicroBatchLimit& limit, const StepSplit& split) {
  require(!samples.empty(), "step assignment: a global batch without samples");
  StepAssignment assignment;
  const auto shortest =
      std::ranges::min_element(samples, {}, [&](std::size_t sample) { return stream.rows_of(sample); });
  assignment.shortest = static_cast<std::size_t>(shortest - samples.begin());
  assignment.ranks = split.micro_batch_groups > 0 ? grouped_micro_batches(samples.size(), split)
                                                  : balanced_micro_batches(stream, samples, limit, split.ranks);
  if (split.longest_first) order_longest_first(stream, samples, assignment);
  return assignment;
}

std::size_t micro_batch_end(const SampleStream& stream, std::span<const std::size_t> samples, std::size_t begin,
                            const MicroBatchLimit& limit) {
  if (limit.parts > 0) return end_of_part(samples.size(), std::min(limit.parts, samples.size()), begin);
  const std::size_t most = samples.size() - begin;
  const std::size_t last = begin + (limit.samples > 0 ? std::min(limit.samples, most) : most);
  if (limit.tokens == 0) return last;
  std::size_t end = begin + 1, rows = stream.rows_of(samples[begin]);
  while (end < last && rows + stream.rows_of(samples[end]) <= limit.tokens) rows += stream.rows_of(samples[end++]);
  return end;
}

}  // namespace mylos::train
