#include "train/engine/samples/sampler.hpp"

#include "core/base/error.hpp"
#include "core/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace mylos::train {
namespace {

/// Random streams for shuffling; parameters draw from streams named by the hash of their tensor's name.
constexpr std::uint64_t shuffle_stream = 0x73687566666c6500u, part_stream = 0x7061727400000000u;

/// Shuffles as Fisher and Yates; draw i has its own counter.
void shuffle_values(std::vector<std::size_t>& values, std::uint64_t seed, std::uint64_t stream) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[uniform_below(i, seed, stream, i)]);
}

}  // namespace

EpochSampler::EpochSampler(std::size_t samples, std::size_t batch, std::uint64_t seed, double fraction)
    : part_(samples), batch_(batch), seed_(seed) {
  require(samples > 0 && batch > 0, fmt::format("sampler: batches of {} out of {} samples", batch, samples));
  require(fraction > 0.0 && fraction <= 1.0, fmt::format("sampler: a part of {}", fraction));
  std::iota(part_.begin(), part_.end(), std::size_t{0});
  if (fraction < 1.0) {
    shuffle_values(part_, seed, part_stream);
    part_.resize(part_of(samples, fraction));
    std::ranges::sort(part_);
  }
  shuffle(0);
}

std::size_t EpochSampler::part_of(std::size_t samples, double fraction) {
  return std::max<std::size_t>(1, std::llround(fraction * static_cast<double>(samples)));
}

std::vector<std::size_t> EpochSampler::batch(std::size_t step) const {
  const std::size_t epoch = step / steps_per_epoch();
  if (epoch != epoch_) shuffle(epoch);
  const std::size_t begin = step % steps_per_epoch() * batch_;
  const std::size_t end = std::min(begin + batch_, samples());
  return {order_.begin() + static_cast<std::ptrdiff_t>(begin), order_.begin() + static_cast<std::ptrdiff_t>(end)};
}

void EpochSampler::shuffle(std::size_t epoch) const {
  epoch_ = epoch;
  order_ = part_;
  shuffle_values(order_, seed_, shuffle_stream + epoch);
}

LengthStream::LengthStream(std::vector<std::size_t> lengths, std::size_t batch, std::uint64_t seed, WorkKind work)
    : lengths_(std::move(lengths)), sampler_(lengths_.size(), batch, seed), work_(std::move(work)) {
  require(!lengths_.empty(), "LengthStream: there are no samples");
}

}  // namespace mylos::train
