#include "train/engine/samples/micro_batches.hpp"

#include "tests/train/engine/listed_task.hpp"

#include <gtest/gtest.h>

namespace mylos::train {
namespace {

/// Returns the end of each micro-batch of step 0.
std::vector<std::size_t> ends(const Task& task, const MicroBatchLimit& limit) {
  const std::vector<std::size_t> samples = task.global_batch(0);
  std::vector<std::size_t> found;
  for (std::size_t begin = 0; begin < samples.size(); begin = found.back()) {
    found.push_back(micro_batch_end(task, samples, begin, limit));
  }
  return found;
}

TEST(MicroBatches, HaveWhatTheLimitAllows) {
  const ListedTask task({{10, 20, 30, 40, 50}});
  using Ends = std::vector<std::size_t>;
  EXPECT_EQ(ends(task, {}), (Ends{5}));
  EXPECT_EQ(ends(task, {.samples = 2}), (Ends{2, 4, 5}));
  EXPECT_EQ(ends(task, {.samples = 9}), (Ends{5}));
  EXPECT_EQ(ends(task, {.tokens = 60}), (Ends{3, 4, 5}));
  EXPECT_EQ(ends(task, {.tokens = 59}), (Ends{2, 3, 4, 5}));
  EXPECT_EQ(ends(task, {.samples = 2, .tokens = 70}), (Ends{2, 4, 5}));
  EXPECT_EQ(ends(task, {.tokens = 1}), (Ends{1, 2, 3, 4, 5})) << "one at least";
  EXPECT_EQ(ends(task, {.tokens = 1000}), (Ends{5}));
}

TEST(MicroBatches, ArePartsWhereTheirNumberIsSaid) {
  for (std::size_t samples = 1; samples <= 17; ++samples) {
    const ListedTask task({std::vector<std::size_t>(samples, 10)});
    for (std::size_t parts = 1; parts <= 20; ++parts) {
      const std::vector<std::size_t> found = ends(task, {.parts = parts});
      SCOPED_TRACE(testing::Message() << samples << " samples in " << parts);
      ASSERT_EQ(found.size(), std::min(samples, parts));
      for (std::size_t part = 0, begin = 0; part < found.size(); begin = found[part++]) {
        EXPECT_GE(found[part] - begin, samples / found.size());
        EXPECT_LE(found[part] - begin, (samples + found.size() - 1) / found.size());
      }
    }
  }
}

}  // namespace
}  // namespace mylos::train
