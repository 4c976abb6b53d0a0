#include "tasks/interface/evaluation_slices.hpp"

#include <algorithm>
#include <numeric>

namespace mylos::tasks {

EvaluationSlices::EvaluationSlices(std::span<const std::size_t> lengths, std::size_t rows_of_batch) : starts_{0} {
  std::size_t rows = 0;
  const auto end_batch = [&](std::size_t end) {
    largest_.samples = std::max(largest_.samples, end - starts_.back());
    largest_.rows = std::max(largest_.rows, rows);
    starts_.push_back(end);
    rows = 0;
  };
  for (std::size_t sample = 0; sample < lengths.size(); ++sample) {
    if (sample > starts_.back() && rows + lengths[sample] > rows_of_batch) end_batch(sample);
    rows += lengths[sample];
    largest_.longest = std::max(largest_.longest, lengths[sample]);
  }
  end_batch(lengths.size());
}

std::vector<std::size_t> EvaluationSlices::samples(std::size_t index) const {
  std::vector<std::size_t> samples(end(index) - begin(index));
  std::iota(samples.begin(), samples.end(), begin(index));
  return samples;
}

}  // namespace mylos::tasks
