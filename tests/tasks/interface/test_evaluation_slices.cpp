#include "tasks/interface/evaluation_slices.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace mylos::tasks {
namespace {

TEST(EvaluationSlices, HaveAsManySamplesInOrderAsFit) {
  const std::array<std::size_t, 7> lengths = {4, 6, 1, 9, 12, 3, 2};
  const EvaluationSlices slices(lengths, 10);
  ASSERT_EQ(slices.count(), 4u);
  EXPECT_EQ(slices.samples(0), (std::vector<std::size_t>{0, 1})) << "10 rows fit";
  EXPECT_EQ(slices.samples(1), (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(slices.samples(2), (std::vector<std::size_t>{4})) << "one sample with more rows is a batch";
  EXPECT_EQ(slices.samples(3), (std::vector<std::size_t>{5, 6}));
  EXPECT_EQ(slices.largest().samples, 2u);
  EXPECT_EQ(slices.largest().rows, 12u);
  EXPECT_EQ(slices.largest().longest, 12u);
}

TEST(EvaluationSlices, OfDevicesAreLarger) {
  const std::vector<std::size_t> lengths(1000, 128);
  const EvaluationSlices slices(lengths);
  EXPECT_EQ(slices.largest().rows, runs_on_host ? 2048u : 16384u);
}

}  // namespace
}  // namespace mylos::tasks
