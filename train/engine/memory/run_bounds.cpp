#include "train/engine/memory/run_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace mylos::train {
namespace {

/// Batches are inspected one by one up to this many epochs; beyond it only an upper bound is computed.
constexpr std::size_t most_epochs_looked_at = 64;

std::size_t divided_up(std::size_t count, std::size_t parts) { return (count + parts - 1) / parts; }

/// Returns the most samples of a rank in one micro-batch, for global batches of `batch` samples.
std::size_t most_samples(std::size_t batch, const MicroBatchLimit& limit, const StepSplit& split) {
  if (split.micro_batch_groups > 0) return divided_up(batch, split.micro_batch_groups);
  if (limit.parts > 0) return divided_up(batch, limit.parts);  // one rank may have most samples
  return limit.samples > 0 ? std::min(limit.samples, batch) : batch;
}

/// No micro-batch has more rows than the longest samples of an epoch together, nor more samples than its limit allows
/// of the shortest. No rank has more rows than its part of a batch plus one sample.
MicroBatchBounds bound_of_epoch(const SampleStream& stream, const MicroBatchLimit& limit, const StepSplit& split) {
  std::vector<std::size_t> rows;
  std::size_t batch = 0;
  for (std::size_t step = 0; step < stream.steps_per_epoch(); ++step) {
    const std::vector<std::size_t> samples = stream.global_batch(step);
    batch = std::max(batch, samples.size());
    for (const std::size_t sample : samples) rows.push_back(stream.rows_of(sample));
  }
  std::ranges::sort(rows, std::greater<>());
  const std::size_t shortest = std::max<std::size_t>(1, rows.back());
  const auto sum_of_longest = [&](std::size_t count) {
    const auto end = rows.begin() + static_cast<std::ptrdiff_t>(std::min(rows.size(), count));
    return std::accumulate(rows.begin(), end, std::size_t{0});
  };
  const std::size_t samples = std::min(rows.size(), most_samples(batch, limit, split));
  // Balanced assignments exceed their part by little; micro-batch groups are not balanced.
  const std::size_t ranks = split.micro_batch_groups > 0 ? 1 : split.ranks;
  const std::size_t part = sum_of_longest(batch) / ranks + rows.front();
  MicroBatchBounds bounds{{samples, std::min(sum_of_longest(samples), part), rows.front()}, batch};
  if (split.micro_batch_groups > 0) {
    bounds.micro_batches = split.micro_batch_groups / split.ranks;
  } else if (limit.parts > 0) {
    bounds.micro_batches = std::min(limit.parts, batch);
  } else if (limit.tokens > 0) {
    const std::size_t tokens = std::max(limit.tokens, bounds.largest.longest);
    bounds.largest.samples = std::min(samples, tokens / shortest);
    bounds.largest.rows = std::min(bounds.largest.rows, tokens);
  } else {
    bounds.micro_batches = divided_up(batch, samples);
  }
  return bounds;
}

void include(const SampleStream& stream, std::span<const std::size_t> samples, const Positions& positions,
             BatchShape& largest) {
  std::size_t rows = 0;
  for (const std::size_t position : positions) {
    const std::size_t length = stream.rows_of(samples[position]);
    rows += length;
    largest.longest = std::max(largest.longest, length);
  }
  largest.rows = std::max(largest.rows, rows);
  largest.samples = std::max(largest.samples, positions.size());
}

}  // namespace

std::size_t total_steps(const TrainConfig& config, const SampleStream& stream) {
  if (config.steps > 0) return config.steps;
  return static_cast<std::size_t>(std::ceil(config.epochs * static_cast<double>(stream.steps_per_epoch())));
}

std::size_t largest_global_batch(const SampleStream& stream, std::size_t steps) {
  std::size_t largest = 0;
  for (std::size_t step = 0; step < std::min(steps, stream.steps_per_epoch()); ++step) {
    largest = std::max(largest, stream.global_batch(step).size());
  }
  return largest;
}

std::size_t longest_sample(const SampleStream& stream, std::size_t steps) {
  std::size_t longest = 0;
  for (std::size_t step = 0; step < std::min(steps, stream.steps_per_epoch()); ++step) {
    for (const std::size_t sample : stream.global_batch(step)) longest = std::max(longest, stream.rows_of(sample));
  }
  return longest;
}

MicroBatchBounds bound_micro_batches(const SampleStream& stream, std::size_t steps, const MicroBatchLimit& limit,
                                     const StepSplit& split) {
  if (steps / most_epochs_looked_at > stream.steps_per_epoch()) return bound_of_epoch(stream, limit, split);
  MicroBatchBounds bounds;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::vector<std::size_t> samples = stream.global_batch(step);
    const StepAssignment assignment = assign_step(stream, samples, limit, without_idle_ranks(split, samples.size()));
    bounds.micro_batches = std::max(bounds.micro_batches, assignment.micro_batches());
    for (const std::vector<Positions>& own : assignment.ranks) {
      for (const Positions& positions : own) include(stream, samples, positions, bounds.largest);
    }
  }
  return bounds;
}

std::vector<BatchShape> distinct_micro_batches(const SampleStream& stream, std::size_t steps,
                                               const MicroBatchLimit& limit, const StepSplit& split, std::size_t rank) {
  struct Found {
    BatchShape shape;
    std::size_t times = 0;
  };
  std::map<std::pair<std::size_t, std::size_t>, Found> found;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::vector<std::size_t> samples = stream.global_batch(step);
    const StepAssignment assignment = assign_step(stream, samples, limit, split);
    for (const Positions& positions : assignment.ranks[rank]) {
      BatchShape shape;
      include(stream, samples, positions.empty() ? Positions{assignment.shortest} : positions, shape);
      Found& known = found.try_emplace({shape.samples, shape.longest}, Found{.shape = shape}).first->second;
      known.shape.rows = std::max(known.shape.rows, shape.rows);
      ++known.times;
    }
  }
  std::vector<Found> sorted;
  for (const auto& [key, known] : found) sorted.push_back(known);
  std::ranges::stable_sort(sorted, std::greater<>(), &Found::times);
  std::vector<BatchShape> shapes;
  for (const Found& known : sorted) shapes.push_back(known.shape);
  return shapes;
}

BatchShape largest_micro_batch(const SampleStream& stream, std::size_t steps, const MicroBatchLimit& limit) {
  return bound_micro_batches(stream, steps, limit, {}).largest;
}

}  // namespace mylos::train
