#pragma once

#include "train/engine/sample_stream.hpp"
#include "train/engine/sampler.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mylos::tasks {

/// The groups that BatchNorm takes its statistics of: consecutive parts of a global batch, in its order. The last one
/// may be smaller; a single left-over image joins the group before it.
struct BatchGroups {
  std::size_t images = 0;  ///< of the batch
  std::size_t group = 1;   ///< images of a group

  std::size_t count() const;
  std::size_t begin(std::size_t index) const { return index * group; }
  std::size_t end(std::size_t index) const { return index + 1 == count() ? images : (index + 1) * group; }
};

/// Images as the engine sees them: a row is an image, and a sample is a group of a step's global batch. Groups are
/// parts of the batch and not of the ranks, so that they are the same on every launch. All functions but images() and
/// images_of() may be called by several threads at once.
class GroupStream final : public train::SampleStream {
 public:
  /// Batches of `batch` out of `images`, shuffled anew each epoch as EpochSampler does. An epoch's last batch may be
  /// smaller; one of a single image joins the batch before it. Errors: std::invalid_argument where a number is 0.
  GroupStream(std::size_t images, std::size_t batch, std::size_t group, std::uint64_t seed);
  /// The images of each step as `order` lists them, again and again. Errors: std::invalid_argument where it or one of
  /// its steps is empty.
  GroupStream(std::vector<std::vector<std::size_t>> order, std::size_t group);

  std::size_t steps_per_epoch() const override;
  std::vector<std::size_t> global_batch(std::size_t step) const override;
  train::WorkKind work() const override;
  std::size_t rows_of(std::size_t sample) const override;
  /// Images, because a group's loss is the sum over its images.
  double weight(std::span<const std::size_t> samples) const override;

  /// Images of a global batch that is neither an epoch's last one nor, of a recorded order, smaller than another.
  std::size_t largest_batch() const { return largest_batch_; }
  /// The step whose batch has this sample.
  std::size_t step_of(std::size_t sample) const { return sample / most_groups_; }
  /// The images of the global batch of `step`, in order.
  std::vector<std::size_t> images(std::size_t step) const;
  /// The images of a group, in order.
  std::vector<std::size_t> images_of(std::size_t sample) const;

 private:
  std::size_t batch_size(std::size_t step) const;
  BatchGroups groups(std::size_t step) const { return {batch_size(step), group_}; }

  std::size_t images_ = 0, batch_ = 0, group_;
  std::vector<std::vector<std::size_t>> order_;  ///< images step by step; empty: shuffled
  std::optional<train::EpochSampler> sampler_;
  std::size_t largest_batch_ = 0;
  std::size_t most_groups_ = 1;  ///< of a batch: sample = step * most_groups_ + index of its group
};

}  // namespace mylos::tasks
