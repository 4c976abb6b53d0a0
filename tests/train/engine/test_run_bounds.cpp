#include "train/engine/run_bounds.hpp"

#include "tests/train/engine/listed_task.hpp"

#include <gtest/gtest.h>

namespace mylos::train {
namespace {

TEST(LargestMicroBatch, IsTheLargestOfEachSizeOverTheSteps) {
  const ListedTask task({{10, 20, 30, 40}, {70, 5, 5, 5}, {90}});
  const BatchShape two = largest_micro_batch(task, 2, {.samples = 2});
  EXPECT_EQ(two.samples, 2u);
  EXPECT_EQ(two.rows, 75u);
  EXPECT_EQ(two.longest, 70u);
  EXPECT_EQ(largest_micro_batch(task, 1, {.samples = 2}).rows, 70u) << "later steps do not count";
  EXPECT_EQ(largest_micro_batch(task, 3, {.samples = 1}).rows, 90u);
  EXPECT_EQ(largest_micro_batch(task, 3, {.samples = 3}).rows, 90u) << "the fourth sample is a micro-batch of its own";
  EXPECT_EQ(largest_micro_batch(task, 3, {.samples = 8}).samples, 4u);
}

TEST(LargestGlobalBatch, CountsSamples) {
  const ListedTask task({{10}, {10, 20, 30}, {10, 20}});
  EXPECT_EQ(largest_global_batch(task, 1), 1u);
  EXPECT_EQ(largest_global_batch(task, 2), 3u);
  EXPECT_EQ(largest_global_batch(task, 1000), 3u);
}

TEST(LargestMicroBatch, OfTokensIsTheLargestThatIsCut) {
  const ListedTask task({{10, 20, 30, 40}, {70, 5, 5, 5}});
  const BatchShape shape = largest_micro_batch(task, 2, {.tokens = 75});
  EXPECT_EQ(shape.rows, 75u);
  EXPECT_EQ(shape.samples, 3u);
  EXPECT_EQ(shape.longest, 70u);
}

TEST(LargestMicroBatch, OfVeryManyEpochsIsBounded) {
  const ListedTask task({{10, 20, 30, 40}, {70, 5, 5, 5}});
  constexpr std::size_t steps = 1000;
  for (const MicroBatchLimit limit : {MicroBatchLimit{}, MicroBatchLimit{.samples = 3}, MicroBatchLimit{.tokens = 75},
                                      MicroBatchLimit{.samples = 2, .tokens = 75}}) {
    const BatchShape exact = largest_micro_batch(task, 2, limit), bound = largest_micro_batch(task, steps, limit);
    EXPECT_GE(bound.rows, exact.rows);
    EXPECT_GE(bound.samples, exact.samples);
    EXPECT_EQ(bound.longest, exact.longest);
  }
  EXPECT_EQ(largest_micro_batch(task, steps, {.tokens = 75}).rows, 75u);
}

}  // namespace
}  // namespace mylos::train
