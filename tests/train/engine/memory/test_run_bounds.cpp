#include "train/engine/memory/run_bounds.hpp"

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

/// Two ranks with up to two samples a micro-batch. The second step has one sample, so that one of the ranks computes a
/// dummy of it.
TEST(DistinctMicroBatches, AreThoseOfARank) {
  const ListedTask task({{40, 10, 10, 40}, {30}, {40, 20, 20, 40}});
  for (const std::size_t rank : {0u, 1u}) {
    const std::vector<BatchShape> shapes = distinct_micro_batches(task, 3, {.samples = 2}, {.ranks = 2}, rank);
    ASSERT_EQ(shapes.size(), 2u) << "of the first and third step, and of the second";
    EXPECT_EQ(shapes[0], (BatchShape{.samples = 2, .rows = 60, .longest = 40})) << "the third step has more rows";
    EXPECT_EQ(shapes[1], (BatchShape{.samples = 1, .rows = 30, .longest = 30})) << "once";
    EXPECT_EQ(distinct_micro_batches(task, 1, {.samples = 2}, {.ranks = 2}, rank),
              (std::vector{BatchShape{.samples = 2, .rows = 50, .longest = 40}}));
  }
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
