#include "train/micro_batches.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

namespace mylos::train {
namespace {

/// A run's batches are looked at one by one up to this many epochs; beyond it they are bounded.
constexpr std::size_t most_epochs_looked_at = 64;

/// No micro-batch has more rows than the longest samples of an epoch together, nor more samples than the shortest.
BatchShape bound_of_micro_batches(const Task& task, const MicroBatchLimit& limit) {
  std::vector<std::size_t> rows;
  std::size_t largest_batch = 0;
  for (std::size_t step = 0; step < task.steps_per_epoch(); ++step) {
    const std::vector<std::size_t> samples = task.global_batch(step);
    largest_batch = std::max(largest_batch, samples.size());
    for (const std::size_t sample : samples) rows.push_back(task.rows_of(sample));
  }
  std::ranges::sort(rows, std::greater<>());
  const std::size_t shortest = std::max<std::size_t>(1, rows.back());
  rows.resize(std::min({rows.size(), limit.samples > 0 ? limit.samples : largest_batch, largest_batch}));
  BatchShape bound{rows.size(), std::accumulate(rows.begin(), rows.end(), std::size_t{0}), rows.front()};
  if (limit.tokens == 0) return bound;
  const std::size_t tokens = std::max(limit.tokens, bound.longest);
  return {std::min(bound.samples, tokens / shortest), std::min(bound.rows, tokens), bound.longest};
}

}  // namespace

std::size_t micro_batch_end(const Task& task, std::span<const std::size_t> samples, std::size_t begin,
                            const MicroBatchLimit& limit) {
  const std::size_t most = samples.size() - begin;
  const std::size_t last = begin + (limit.samples > 0 ? std::min(limit.samples, most) : most);
  if (limit.tokens == 0) return last;
  std::size_t end = begin + 1, rows = task.rows_of(samples[begin]);
  while (end < last && rows + task.rows_of(samples[end]) <= limit.tokens) rows += task.rows_of(samples[end++]);
  return end;
}

BatchShape largest_micro_batch(const Task& task, std::size_t steps, const MicroBatchLimit& limit) {
  if (steps / most_epochs_looked_at > task.steps_per_epoch()) return bound_of_micro_batches(task, limit);
  BatchShape largest;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::vector<std::size_t> samples = task.global_batch(step);
    for (std::size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
      end = micro_batch_end(task, samples, begin, limit);
      std::size_t rows = 0;
      for (std::size_t i = begin; i < end; ++i) {
        rows += task.rows_of(samples[i]);
        largest.longest = std::max(largest.longest, task.rows_of(samples[i]));
      }
      largest.rows = std::max(largest.rows, rows);
      largest.samples = std::max(largest.samples, end - begin);
    }
  }
  return largest;
}

std::size_t largest_global_batch(const Task& task, std::size_t steps) {
  std::size_t largest = 0;
  for (std::size_t step = 0; step < std::min(steps, task.steps_per_epoch()); ++step) {
    largest = std::max(largest, task.global_batch(step).size());
  }
  return largest;
}

}  // namespace mylos::train
