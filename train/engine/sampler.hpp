#pragma once

#include <cstdint>
#include <vector>

/// The order in which samples are seen: a function of (samples, batch, seed, step) alone, so that it is the same for
/// every number of ranks and needs no state to resume.
namespace mylos::train {

class EpochSampler {
 public:
  /// Batches of `batch` out of `samples`, shuffled anew each epoch; an epoch's last batch may be smaller.
  EpochSampler(std::size_t samples, std::size_t batch, std::uint64_t seed);

  std::size_t steps_per_epoch() const { return (samples_ + batch_ - 1) / batch_; }
  /// The samples of step `step`, counted from 0 over the whole run.
  std::vector<std::size_t> batch(std::size_t step) const;

 private:
  void shuffle(std::size_t epoch) const;

  std::size_t samples_, batch_;
  std::uint64_t seed_;
  mutable std::vector<std::size_t> order_;  ///< of epoch_, kept because steps come one after another
  mutable std::size_t epoch_ = 0;
};

}  // namespace mylos::train
