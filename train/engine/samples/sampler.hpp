#pragma once

#include "train/engine/samples/sample_stream.hpp"

#include <cstdint>
#include <vector>

/// Shuffles samples. The order is a function of (samples, batch, seed, step) alone, so it is the same for any number of
/// ranks and needs no saved state.
namespace mylos::train {

class EpochSampler {
 public:
  /// Draws batches of `batch` out of `samples`, shuffled anew each epoch. The last batch of an epoch may be smaller.
  /// With `fraction` below 1, all epochs have the same random part of the samples, at least one.
  EpochSampler(std::size_t samples, std::size_t batch, std::uint64_t seed, double fraction = 1.0);

  /// Returns the number of samples in an epoch, also before there is a sampler.
  std::size_t samples() const { return part_.size(); }
  static std::size_t part_of(std::size_t samples, double fraction);
  std::size_t steps_per_epoch() const { return (samples() + batch_ - 1) / batch_; }
  /// Returns the samples of `step`, counted from 0 over the whole run.
  std::vector<std::size_t> batch(std::size_t step) const;

 private:
  void shuffle(std::size_t epoch) const;

  std::vector<std::size_t> part_;  ///< the samples of an epoch, ascending
  std::size_t batch_;
  std::uint64_t seed_;
  mutable std::vector<std::size_t> order_;  ///< order of epoch_, cached because steps are sequential
  mutable std::size_t epoch_ = 0;
};

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
