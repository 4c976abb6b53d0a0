#pragma once

#include "train/engine/samples/sample_stream.hpp"
#include "train/engine/samples/sampler.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mylos::tasks {

/// The groups over which BatchNorm computes its statistics: consecutive parts of a global batch, in order. The last
/// group may be smaller; a single left-over image joins the group before it.
struct BatchGroups {
  std::size_t images = 0;  ///< images in the batch
  std::size_t group = 1;   ///< images per group

  std::size_t count() const;
  std::size_t begin(std::size_t index) const { return index * group; }
  std::size_t end(std::size_t index) const { return index + 1 == count() ? images : (index + 1) * group; }
};

/// The training images as the engine sees them: a row is an image, and a sample is a group of a step's global batch.
/// Groups are parts of the batch and not of the ranks, so they are the same on every launch. All functions except
/// images(), images_of() and image_after() are thread-safe.
class GroupStream final : public train::SampleStream {
 public:
  /// Draws batches of `batch` out of `images`, shuffled anew each epoch as in EpochSampler. The last batch of an epoch
  /// may be smaller; if it would be a single image, that image joins the previous batch. Errors: std::invalid_argument
  /// if a number is 0, or `fraction`, the part of the images, is not above 0 and at most 1.
  GroupStream(std::size_t images, std::size_t batch, std::size_t group, std::uint64_t seed, double fraction = 1.0);
  /// Uses the images of each step listed in `order`, cyclically. Errors: std::invalid_argument if the list or one of
  /// its steps is empty.
  GroupStream(std::vector<std::vector<std::size_t>> order, std::size_t group);

  std::size_t steps_per_epoch() const override;
  std::vector<std::size_t> global_batch(std::size_t step) const override;
  train::WorkKind work() const override;
  std::size_t rows_of(std::size_t sample) const override;
  /// Returns the number of images, because a group's loss is the sum over its images.
  double weight(std::span<const std::size_t> samples) const override;

  /// Returns the images of a full global batch; for a recorded order, of the largest one.
  std::size_t largest_batch() const { return largest_batch_; }
  /// Returns the step whose batch contains this sample.
  std::size_t step_of(std::size_t sample) const { return sample / most_groups_; }
  /// Returns the images of the global batch of `step`, in order.
  std::vector<std::size_t> images(std::size_t step) const;
  /// Returns the images of a group, in order.
  std::vector<std::size_t> images_of(std::size_t sample) const;
  /// Returns the image `places` behind the first `image` of a step, in the order of its epoch, whose end its beginning
  /// follows. The step must contain `image`.
  std::size_t image_after(std::size_t step, std::size_t image, std::size_t places) const;

 private:
  std::size_t batch_size(std::size_t step) const;
  BatchGroups groups(std::size_t step) const { return {batch_size(step), group_}; }

  std::size_t images_ = 0, batch_ = 0, group_;
  std::vector<std::vector<std::size_t>> order_;  ///< images of each step; empty: shuffled
  std::optional<train::EpochSampler> sampler_;
  std::size_t largest_batch_ = 0;
  std::size_t most_groups_ = 1;  ///< most groups in a batch: sample = step * most_groups_ + index of its group
};

}  // namespace mylos::tasks
