#pragma once

#include "train/engine/samples/sample_stream.hpp"
#include "train/engine/samples/sampler.hpp"

#include <cstdint>
#include <vector>

namespace mylos::train {

/// Samples that have a length but no data, for plans.
class LengthStream final : public SampleStream {
 public:
  /// Creates samples with lengths[i] rows each. A step takes `batch` of them, shuffled with `seed` as in a run. Errors:
  /// std::invalid_argument if there are no samples.
  LengthStream(std::vector<std::size_t> lengths, std::size_t batch, std::uint64_t seed, WorkKind work = {});

  std::size_t steps_per_epoch() const override { return sampler_.steps_per_epoch(); }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return sampler_.batch(step); }
  WorkKind work() const override { return work_; }
  std::size_t rows_of(std::size_t sample) const override { return lengths_[sample]; }
  double weight(std::span<const std::size_t> samples) const override { return static_cast<double>(samples.size()); }

 private:
  std::vector<std::size_t> lengths_;
  EpochSampler sampler_;
  WorkKind work_;
};

}  // namespace mylos::train
