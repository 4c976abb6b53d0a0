#include "train/engine/samples/micro_batches.hpp"

#include <algorithm>

namespace mylos::train {
namespace {

/// Returns the first end after `begin` when part i ends at i * size / parts; `parts` must be at most `size`.
std::size_t end_of_part(std::size_t size, std::size_t parts, std::size_t begin) {
  const std::size_t part = begin * parts / size + 1;
  const std::size_t end = part * size / parts;
  return end > begin ? end : (part + 1) * size / parts;
}

}  // namespace

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
