#include "tasks/image_classification/group_stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace mylos::tasks {
namespace {

using Sizes = std::vector<std::size_t>;

Sizes group_sizes(const GroupStream& stream, std::size_t step) {
  Sizes sizes;
  for (const std::size_t sample : stream.global_batch(step)) sizes.push_back(stream.rows_of(sample));
  return sizes;
}

TEST(BatchGroups, CutABatchWithoutAGroupOfOneImage) {
  const auto sizes = [](std::size_t images, std::size_t group) {
    const BatchGroups batch{images, group};
    Sizes all;
    for (std::size_t i = 0; i < batch.count(); ++i) all.push_back(batch.end(i) - batch.begin(i));
    return all;
  };
  EXPECT_EQ(sizes(64, 16), (Sizes{16, 16, 16, 16}));
  EXPECT_EQ(sizes(40, 16), (Sizes{16, 16, 8}));
  EXPECT_EQ(sizes(34, 16), (Sizes{16, 16, 2}));
  EXPECT_EQ(sizes(33, 16), (Sizes{16, 17})) << "a single image joins the group before";
  EXPECT_EQ(sizes(7, 16), (Sizes{7}));
  EXPECT_EQ(sizes(1, 16), (Sizes{1})) << "there is no group before";
  EXPECT_EQ(sizes(3, 1), (Sizes{1, 1, 1}));
}

TEST(GroupStream, GroupsAreConsecutivePartsOfTheShuffledBatch) {
  const GroupStream stream(100, 40, 16, 7);
  const train::EpochSampler sampler(100, 40, 7);
  ASSERT_EQ(stream.steps_per_epoch(), 3u);
  for (std::size_t step = 0; step < 7; ++step) {
    EXPECT_EQ(stream.images(step), sampler.batch(step));
    Sizes joined;
    for (const std::size_t sample : stream.global_batch(step)) {
      EXPECT_EQ(stream.step_of(sample), step);
      const Sizes images = stream.images_of(sample);
      EXPECT_EQ(images.size(), stream.rows_of(sample));
      joined.insert(joined.end(), images.begin(), images.end());
    }
    EXPECT_EQ(joined, sampler.batch(step));
  }
  EXPECT_EQ(group_sizes(stream, 0), (Sizes{16, 16, 8}));
  EXPECT_EQ(group_sizes(stream, 2), (Sizes{16, 4}));
}

TEST(GroupStream, TheOrderOfAnEpochIsFollowedAndBeginsAgain) {
  const GroupStream stream(21, 5, 5, 3);  // the 21st image joins the last step
  const std::size_t steps = stream.steps_per_epoch();
  Sizes order;
  for (std::size_t step = steps; step < 2 * steps; ++step) {
    const Sizes images = stream.images(step);
    order.insert(order.end(), images.begin(), images.end());
  }
  ASSERT_EQ(order.size(), 21u);
  for (std::size_t place = 0; place < 21; ++place) {
    const std::size_t step = steps + std::min(place / 5, steps - 1);
    for (std::size_t places = 1; places < 21; ++places) {
      EXPECT_EQ(stream.image_after(step, order[place], places), order[(place + places) % 21]);
    }
  }
  const GroupStream listed({{1, 1}, {2, 3}}, 2);
  EXPECT_EQ(listed.image_after(2, 1, 1), 1u);
  EXPECT_EQ(listed.image_after(2, 1, 2), 2u);
}

TEST(GroupStream, SamplesOfDifferentStepsDiffer) {
  const GroupStream stream(50, 7, 3, 1);
  Sizes all;
  for (std::size_t step = 0; step < 20; ++step) {
    const Sizes samples = stream.global_batch(step);
    all.insert(all.end(), samples.begin(), samples.end());
  }
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

TEST(GroupStream, EveryEpochHasEveryImageOnce) {
  struct Case {
    std::size_t images, batch, group;
  };
  for (const auto& [images, batch, group] :
       {Case{97, 16, 4}, Case{97, 32, 8}, Case{65, 64, 16}, Case{5, 64, 16}, Case{9, 1, 1}, Case{7, 2, 2}}) {
    const GroupStream stream(images, batch, group, 3);
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
      Sizes seen;
      for (std::size_t step = 0; step < stream.steps_per_epoch(); ++step) {
        for (const std::size_t sample : stream.global_batch(epoch * stream.steps_per_epoch() + step)) {
          const Sizes group_images = stream.images_of(sample);
          seen.insert(seen.end(), group_images.begin(), group_images.end());
        }
      }
      std::ranges::sort(seen);
      Sizes expected(images);
      std::iota(expected.begin(), expected.end(), std::size_t{0});
      EXPECT_EQ(seen, expected) << images << " images in batches of " << batch << " and groups of " << group;
    }
  }
}

TEST(GroupStream, ALastBatchOfOneImageJoinsTheStepBefore) {
  const GroupStream stream(65, 16, 8, 3);
  ASSERT_EQ(stream.steps_per_epoch(), 4u);
  EXPECT_EQ(group_sizes(stream, 2), (Sizes{8, 8}));
  EXPECT_EQ(group_sizes(stream, 3), (Sizes{8, 9}));
  EXPECT_EQ(group_sizes(stream, 7), (Sizes{8, 9}));
  EXPECT_EQ(stream.weight(stream.global_batch(3)), 17.0);
  EXPECT_EQ(stream.images(3).size(), 17u);
  EXPECT_EQ(stream.largest_batch(), 16u);
  EXPECT_EQ(GroupStream(9, 1, 1, 3).steps_per_epoch(), 9u) << "all batches have one image";
  EXPECT_EQ(GroupStream(1, 16, 8, 3).steps_per_epoch(), 1u);
  // With pairs, the joined batch has one more group than the others.
  const GroupStream pairs(7, 3, 2, 3);
  ASSERT_EQ(pairs.steps_per_epoch(), 2u);
  EXPECT_EQ(group_sizes(pairs, 0), (Sizes{3}));
  EXPECT_EQ(group_sizes(pairs, 1), (Sizes{2, 2}));
}

TEST(GroupStream, ARecordedOrderRepeats) {
  const GroupStream stream({{5, 6, 7, 8}, {1, 2, 3}}, 2);
  EXPECT_EQ(stream.steps_per_epoch(), 2u);
  EXPECT_EQ(stream.images(0), (Sizes{5, 6, 7, 8}));
  EXPECT_EQ(stream.images(3), (Sizes{1, 2, 3}));
  EXPECT_EQ(group_sizes(stream, 0), (Sizes{2, 2}));
  EXPECT_EQ(group_sizes(stream, 3), (Sizes{3}));
  EXPECT_EQ(stream.images_of(stream.global_batch(2)[1]), (Sizes{7, 8}));
  EXPECT_EQ(stream.largest_batch(), 4u);
}

TEST(GroupStream, CountsImagesOfGroups) {
  const train::WorkKind work = GroupStream(8, 4, 2, 1).work();
  EXPECT_EQ(work.name, "images");
  EXPECT_EQ(work.sample, "group");
  EXPECT_EQ(work.rows, 1u);
}

TEST(GroupStream, RefusesWhatHasNoImages) {
  EXPECT_THROW(GroupStream(0, 4, 2, 1), std::invalid_argument);
  EXPECT_THROW(GroupStream(4, 0, 2, 1), std::invalid_argument);
  EXPECT_THROW(GroupStream(4, 4, 0, 1), std::invalid_argument);
  EXPECT_THROW(GroupStream({}, 2), std::invalid_argument);
  EXPECT_THROW(GroupStream({{1}, {}}, 2), std::invalid_argument);
}

}  // namespace
}  // namespace mylos::tasks
