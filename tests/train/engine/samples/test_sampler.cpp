#include "train/engine/samples/sampler.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace mylos::train {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

/// Returns the samples of an epoch, in order.
std::vector<std::size_t> epoch_order(const EpochSampler& sampler, std::size_t epoch) {
  std::vector<std::size_t> order;
  const std::size_t steps = sampler.steps_per_epoch();
  for (std::size_t step = epoch * steps; step < (epoch + 1) * steps; ++step) {
    for (const std::size_t sample : sampler.batch(step)) order.push_back(sample);
  }
  return order;
}

TEST(EpochSampler, SeesEverySampleOnceAnEpoch) {
  for (const auto& [samples, batch] : {std::pair(10u, 3u), std::pair(12u, 4u), std::pair(1u, 1u), std::pair(3u, 8u)}) {
    const EpochSampler sampler(samples, batch, 42);
    for (std::size_t epoch = 0; epoch < 3; ++epoch) {
      const auto order = epoch_order(sampler, epoch);
      EXPECT_EQ(order.size(), samples);
      EXPECT_EQ(std::set(order.begin(), order.end()).size(), samples);
      EXPECT_EQ(*std::ranges::max_element(order), samples - 1u);
    }
  }
}

TEST(EpochSampler, TheLastBatchOfAnEpochIsWhatIsLeft) {
  const EpochSampler sampler(10, 4, 42);
  EXPECT_EQ(sampler.steps_per_epoch(), 3u);
  EXPECT_THAT(sampler.batch(0), SizeIs(4));
  EXPECT_THAT(sampler.batch(2), SizeIs(2));
  EXPECT_THAT(sampler.batch(3), SizeIs(4));
  EXPECT_THAT(sampler.batch(5), SizeIs(2));
}

TEST(EpochSampler, ShufflesEachEpochAndEachSeedAnew) {
  const EpochSampler sampler(100, 10, 42), other(100, 10, 43);
  EXPECT_FALSE(std::ranges::is_sorted(epoch_order(sampler, 0)));
  EXPECT_NE(epoch_order(sampler, 0), epoch_order(sampler, 1));
  EXPECT_NE(epoch_order(sampler, 0), epoch_order(other, 0));
}

TEST(EpochSampler, ABatchDependsOnTheStepAlone) {
  const EpochSampler forwards(50, 8, 42), backwards(50, 8, 42);
  std::vector<std::vector<std::size_t>> batches;
  for (std::size_t step = 0; step < 21; ++step) batches.push_back(forwards.batch(step));
  for (std::size_t step = 21; step-- > 0;) EXPECT_EQ(backwards.batch(step), batches[step]) << "step " << step;
}

TEST(EpochSampler, TheOrderDoesNotDependOnTheBatch) {
  EXPECT_EQ(epoch_order(EpochSampler(50, 8, 42), 1), epoch_order(EpochSampler(50, 3, 42), 1));
}

TEST(EpochSampler, SeesTheSamePartInEveryEpoch) {
  const auto part = [](const EpochSampler& sampler, std::size_t epoch) {
    const auto order = epoch_order(sampler, epoch);
    return std::set(order.begin(), order.end());
  };
  const EpochSampler sampler(200, 7, 42, 0.05);
  EXPECT_EQ(sampler.samples(), 10u);
  EXPECT_EQ(sampler.steps_per_epoch(), 2u);
  EXPECT_THAT(part(sampler, 0), SizeIs(10));
  EXPECT_GT(*part(sampler, 0).rbegin(), 100u) << "not the first samples";
  EXPECT_EQ(part(sampler, 0), part(sampler, 5));
  EXPECT_NE(epoch_order(sampler, 0), epoch_order(sampler, 1));
  EXPECT_NE(part(sampler, 0), part(EpochSampler(200, 7, 43, 0.05), 0));
  EXPECT_EQ(EpochSampler(3, 7, 42, 1e-9).samples(), 1u);
  EXPECT_EQ(EpochSampler(100, 7, 42, 0.07).samples(), 7u);
  EXPECT_EQ(epoch_order(EpochSampler(50, 8, 42, 1.0), 1), epoch_order(EpochSampler(50, 8, 42), 1));
}

// Each sample is at each position about equally often: 10 x 10 cells with 400 on average and standard deviation 19.
TEST(EpochSampler, ShufflesEvenly) {
  const EpochSampler sampler(10, 10, 42);
  std::size_t counts[10][10] = {};
  for (std::size_t epoch = 0; epoch < 4000; ++epoch) {
    const auto order = epoch_order(sampler, epoch);
    for (std::size_t position = 0; position < 10; ++position) ++counts[position][order[position]];
  }
  for (const auto& row : counts) {
    for (const std::size_t count : row) EXPECT_NEAR(static_cast<double>(count), 400.0, 100.0);
  }
}

TEST(EpochSampler, RefusesNothingToSample) {
  EXPECT_THAT(tests::error_of([] { EpochSampler(0, 4, 42); }), HasSubstr("batches of 4 out of 0 samples"));
  EXPECT_THAT(tests::error_of([] { EpochSampler(4, 0, 42); }), HasSubstr("batches of 0 out of 4 samples"));
}

}  // namespace
}  // namespace mylos::train
