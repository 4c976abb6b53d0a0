#include "tasks/image_classification/group_stream.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <utility>

namespace mylos::tasks {

std::size_t BatchGroups::count() const {
  const std::size_t full = images / group, rest = images % group;
  return full == 0 ? 1 : full + (rest > 1 ? 1 : 0);
}

GroupStream::GroupStream(std::size_t images, std::size_t batch, std::size_t group, std::uint64_t seed, double fraction)
    : group_(group) {
  require(images > 0 && batch > 0 && group > 0, "group stream: images, batches and groups have at least one image");
  images_ = train::EpochSampler::part_of(images, fraction);
  largest_batch_ = batch_ = std::min(batch, images_);
  sampler_.emplace(images, batch_, seed, fraction);
  for (const std::size_t size : {batch_, batch_size(steps_per_epoch() - 1)}) {
    most_groups_ = std::max(most_groups_, BatchGroups{size, group_}.count());
  }
}

GroupStream::GroupStream(std::vector<std::vector<std::size_t>> order, std::size_t group)
    : group_(group), order_(std::move(order)) {
  require(!order_.empty() && group > 0, "group stream: an order has steps, and groups have images");
  for (const std::vector<std::size_t>& step : order_) {
    require(!step.empty(), "group stream: a step without images");
    largest_batch_ = std::max(largest_batch_, step.size());
  }
  for (const std::vector<std::size_t>& step : order_) {
    most_groups_ = std::max(most_groups_, BatchGroups{step.size(), group_}.count());
  }
}

std::size_t GroupStream::steps_per_epoch() const {
  if (!sampler_) return order_.size();
  const bool has_single = batch_ > 1 && images_ > batch_ && images_ % batch_ == 1;
  return sampler_->steps_per_epoch() - (has_single ? 1 : 0);
}

std::size_t GroupStream::batch_size(std::size_t step) const {
  if (!sampler_) return order_[step % order_.size()].size();
  const std::size_t in_epoch = step % steps_per_epoch();
  return in_epoch + 1 == steps_per_epoch() ? images_ - in_epoch * batch_ : batch_;
}

std::vector<std::size_t> GroupStream::global_batch(std::size_t step) const {
  std::vector<std::size_t> samples(groups(step).count());
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = step * most_groups_ + i;
  return samples;
}

train::WorkKind GroupStream::work() const {
  return {
      .name = "images", .singular = "image", .rows = 1, .samples = "groups", .sample = "group", .sizes_batches = true};
}

std::size_t GroupStream::rows_of(std::size_t sample) const {
  const BatchGroups batch = groups(step_of(sample));
  const std::size_t index = sample % most_groups_;
  require(index < batch.count(), "group stream: no such group");
  return batch.end(index) - batch.begin(index);
}

double GroupStream::weight(std::span<const std::size_t> samples) const {
  std::size_t images = 0;
  for (const std::size_t sample : samples) images += rows_of(sample);
  return static_cast<double>(images);
}

std::vector<std::size_t> GroupStream::images(std::size_t step) const {
  if (!sampler_) return order_[step % order_.size()];
  // The sampler has one more step if a single image is left over.
  const std::size_t epoch = step / steps_per_epoch(), in_epoch = step % steps_per_epoch();
  const std::size_t first = epoch * sampler_->steps_per_epoch();
  std::vector<std::size_t> images = sampler_->batch(first + in_epoch);
  if (images.size() < batch_size(step)) images.push_back(sampler_->batch(first + in_epoch + 1).front());
  return images;
}

std::vector<std::size_t> GroupStream::images_of(std::size_t sample) const {
  const std::vector<std::size_t> all = images(step_of(sample));
  const std::size_t index = sample % most_groups_;
  const BatchGroups batch{all.size(), group_};
  return {all.begin() + static_cast<std::ptrdiff_t>(batch.begin(index)),
          all.begin() + static_cast<std::ptrdiff_t>(batch.end(index))};
}

std::size_t GroupStream::image_after(std::size_t step, std::size_t image, std::size_t places) const {
  const std::size_t first = step - step % steps_per_epoch();
  std::vector<std::size_t> of_step = images(step);
  const auto found = std::ranges::find(of_step, image);
  require(found != of_step.end(), "group stream: the step does not contain this image");
  std::size_t place = static_cast<std::size_t>(found - of_step.begin()) + places;
  while (place >= of_step.size()) {
    place -= of_step.size();
    step = first + (step + 1 - first) % steps_per_epoch();
    of_step = images(step);
  }
  return of_step[place];
}

}  // namespace mylos::tasks
