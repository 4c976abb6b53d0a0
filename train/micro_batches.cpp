#include "train/micro_batches.hpp"

#include <algorithm>

namespace mylos::train {

std::size_t micro_batch_end(const Task& task, std::span<const std::size_t> samples, std::size_t begin,
                            const MicroBatchLimit& limit) {
  const std::size_t most = samples.size() - begin;
  const std::size_t last = begin + (limit.samples > 0 ? std::min(limit.samples, most) : most);
  if (limit.tokens == 0) return last;
  std::size_t end = begin + 1, rows = task.rows_of(samples[begin]);
  while (end < last && rows + task.rows_of(samples[end]) <= limit.tokens) rows += task.rows_of(samples[end++]);
  return end;
}

}  // namespace mylos::train
