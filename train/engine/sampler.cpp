#include "train/engine/sampler.hpp"

#include "core/base/error.hpp"
#include "core/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace mylos::train {
namespace {

/// Random streams for shuffling; parameters draw from streams named by the hash of their tensor's name.
constexpr std::uint64_t shuffle_stream = 0x73687566666c6500u;

}  // namespace

EpochSampler::EpochSampler(std::size_t samples, std::size_t batch, std::uint64_t seed)
    : samples_(samples), batch_(batch), seed_(seed) {
  require(samples > 0 && batch > 0, fmt::format("sampler: batches of {} out of {} samples", batch, samples));
  shuffle(0);
}

std::vector<std::size_t> EpochSampler::batch(std::size_t step) const {
  const std::size_t epoch = step / steps_per_epoch();
  if (epoch != epoch_) shuffle(epoch);
  const std::size_t begin = step % steps_per_epoch() * batch_;
  const std::size_t end = std::min(begin + batch_, samples_);
  return {order_.begin() + static_cast<std::ptrdiff_t>(begin), order_.begin() + static_cast<std::ptrdiff_t>(end)};
}

void EpochSampler::shuffle(std::size_t epoch) const {
  epoch_ = epoch;
  order_.resize(samples_);
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  // Fisher-Yates shuffle; draw i has its own counter.
  for (std::size_t i = samples_; i > 1; --i) {
    std::swap(order_[i - 1], order_[uniform_below(i, seed_, shuffle_stream + epoch, i)]);
  }
}

}  // namespace mylos::train
