#include "train/engine/samples/step_assignment.hpp"

#include "tests/train/engine/listed_task.hpp"
#include "train/engine/memory/run_bounds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace mylos::train {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::size_t> unlike = {40, 3, 17, 90, 22, 8, 8, 61, 5, 33, 12};

StepAssignment share(const std::vector<std::size_t>& rows, std::size_t ranks, const MicroBatchLimit& limit = {},
                     std::size_t micro_batch_groups = 0, std::size_t reduced_together = 1) {
  const ListedTask task({rows});
  return assign_step(task, rows, limit, {ranks, micro_batch_groups, reduced_together});
}

std::size_t rows_of(const std::vector<std::size_t>& rows, const std::vector<Positions>& own) {
  std::size_t sum = 0;
  for (const Positions& positions : own) {
    for (const std::size_t position : positions) sum += rows[position];
  }
  return sum;
}

void expect_every_position_once(const StepAssignment& assignment, std::size_t samples) {
  std::vector<std::size_t> times(samples, 0);
  for (const std::vector<Positions>& own : assignment.ranks) {
    EXPECT_EQ(own.size(), assignment.micro_batches()) << "ranks must join the same collectives";
    for (const Positions& positions : own) {
      EXPECT_TRUE(std::ranges::is_sorted(positions));
      for (const std::size_t position : positions) ++times.at(position);
    }
  }
  EXPECT_EQ(times, std::vector<std::size_t>(samples, 1));
}

TEST(StepAssignment, EveryPlaceIsComputedOnceByAnyNumberOfRanks) {
  for (std::size_t ranks = 1; ranks <= 16; ++ranks) {
    for (const MicroBatchLimit limit :
         {MicroBatchLimit{}, MicroBatchLimit{.samples = 2}, MicroBatchLimit{.tokens = 95}}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, " << limit.samples << " samples, " << limit.tokens);
      expect_every_position_once(share(unlike, ranks, limit), unlike.size());
    }
  }
}

TEST(StepAssignment, TheLongestSampleOfAMicroBatchIsFirst) {
  const std::vector<std::size_t> rows = {4, 9, 4, 12, 1, 9};
  const auto split = [&](StepSplit how, const MicroBatchLimit& limit = {}) {
    how.longest_first = true;
    return assign_step(ListedTask({rows}), rows, limit, how).ranks;
  };
  EXPECT_THAT(split({.ranks = 1}), ElementsAre(ElementsAre(Positions{3, 1, 5, 0, 2, 4})));
  EXPECT_THAT(split({.ranks = 1}, {.samples = 3}), ElementsAre(ElementsAre(Positions{1, 0, 2}, Positions{3, 5, 4})))
      << "micro-batches have the samples that they have otherwise";
  EXPECT_THAT(split({.ranks = 2, .micro_batch_groups = 2}),
              ElementsAre(ElementsAre(Positions{1, 0, 2}), ElementsAre(Positions{3, 5, 4})));
}

TEST(StepAssignment, OneRankComputesTheBatchAsItIs) {
  Positions all(unlike.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  EXPECT_THAT(share(unlike, 1).ranks, ElementsAre(ElementsAre(all)));
  EXPECT_THAT(share({1, 2, 3, 4, 5}, 1, {.samples = 2}).ranks,
              ElementsAre(ElementsAre(Positions{0, 1}, Positions{2, 3}, Positions{4})));
}

TEST(StepAssignment, AreBalancedByRows) {
  const std::size_t all = std::accumulate(unlike.begin(), unlike.end(), std::size_t{0});
  for (const std::size_t ranks : {2u, 3u, 4u}) {
    for (const std::vector<Positions>& own : share(unlike, ranks).ranks) {
      EXPECT_LE(3 * ranks * rows_of(unlike, own), 4 * all + 3 * ranks) << ranks << " ranks";
    }
  }
  EXPECT_THAT(share({5, 5, 5, 5}, 2).ranks, ElementsAre(ElementsAre(Positions{0, 2}), ElementsAre(Positions{1, 3})));
}

TEST(StepAssignment, ARankWithoutSamplesRunsDummyMicroBatches) {
  const StepAssignment assignment = share({7, 4, 9}, 5);
  EXPECT_EQ(assignment.micro_batches(), 1u);
  EXPECT_THAT(assignment.ranks[3], ElementsAre(IsEmpty()));
  EXPECT_EQ(assignment.shortest, 1u);
  // Two long samples against many short ones, one at a time.
  const StepAssignment unequal = share({30, 10, 10, 10}, 2, {.samples = 1});
  EXPECT_THAT(unequal.ranks, ElementsAre(ElementsAre(Positions{0}, IsEmpty(), IsEmpty()),
                                         ElementsAre(Positions{1}, Positions{2}, Positions{3})));
}

// A rank with many short samples used to make more micro-batches than requested, and the others dummies.
TEST(StepAssignment, EveryRankMakesAsManyPartsAsItIsTold) {
  const std::vector<std::size_t> uneven = {90, 1, 1, 1, 80, 1, 1, 1, 1};
  for (const auto& rows : {unlike, uneven}) {
    for (std::size_t ranks = 1; ranks <= 5; ++ranks) {
      for (const std::size_t parts : {1u, 2u, 3u, 5u, 40u}) {
        SCOPED_TRACE(testing::Message() << rows.size() << " samples, " << ranks << " ranks, " << parts << " parts");
        const StepAssignment assignment = share(rows, ranks, {.parts = parts});
        expect_every_position_once(assignment, rows.size());
        std::size_t most = 0;
        for (const std::vector<Positions>& own : assignment.ranks) {
          std::size_t samples = 0, filled = 0;
          for (const Positions& positions : own) {
            samples += positions.size();
            filled += !positions.empty();
          }
          EXPECT_EQ(filled, std::min(parts, samples));
          most = std::max(most, filled);
        }
        EXPECT_EQ(assignment.micro_batches(), most) << "dummies only where another rank has a sample";
      }
    }
  }
}

/// Returns the micro-batch groups in the order in which a step sums them: each rank's rounds if micro-batches are
/// summed before ranks, and round by round within a group of ranks if each micro-batch is summed over ranks first.
std::vector<Positions> in_order_of_sums(const StepAssignment& assignment, std::size_t together) {
  std::vector<Positions> micro_batch_groups;
  for (std::size_t group = 0; group < assignment.ranks.size(); group += together) {
    for (std::size_t round = 0; round < assignment.micro_batches(); ++round) {
      for (std::size_t rank = group; rank < group + together; ++rank)
        micro_batch_groups.push_back(assignment.ranks[rank][round]);
    }
  }
  return micro_batch_groups;
}

TEST(StepAssignment, LeavesAreSummedInOneOrderByAnyNumberOfRanksInAnyMode) {
  const std::vector<Positions> expected = in_order_of_sums(share(unlike, 1, {}, 8), 1);
  EXPECT_EQ(expected.size(), 8u);
  for (const std::size_t ranks : {1u, 2u, 4u, 8u}) {
    for (std::size_t together = 1; together <= ranks; together *= 2) {
      const StepAssignment assignment = share(unlike, ranks, {}, 8, together);
      expect_every_position_once(assignment, unlike.size());
      EXPECT_EQ(in_order_of_sums(assignment, together), expected) << ranks << " ranks, " << together << " together";
    }
  }
}

TEST(StepAssignment, ABatchSmallerThanItsLeavesHasDummyMicroBatches) {
  const StepAssignment assignment = share({5, 6, 7}, 2, {}, 8);
  expect_every_position_once(assignment, 3);
  EXPECT_EQ(assignment.micro_batches(), 4u);
}

TEST(BoundMicroBatches, HoldForEveryRank) {
  const ListedTask task({unlike, {50, 50, 50}});
  for (const std::size_t ranks : {1u, 2u, 3u, 5u}) {
    for (const MicroBatchLimit limit : {MicroBatchLimit{}, MicroBatchLimit{.samples = 2}, MicroBatchLimit{.tokens = 95},
                                        MicroBatchLimit{.parts = 3}, MicroBatchLimit{.parts = 30}}) {
      const MicroBatchBounds exact = bound_micro_batches(task, 2, limit, {.ranks = ranks});
      const MicroBatchBounds bound = bound_micro_batches(task, 1000, limit, {.ranks = ranks});
      EXPECT_LE(exact.largest.rows, bound.largest.rows);
      EXPECT_LE(exact.largest.samples, bound.largest.samples);
      EXPECT_EQ(exact.largest.longest, bound.largest.longest);
      EXPECT_LE(exact.micro_batches, bound.micro_batches);
    }
  }
  EXPECT_EQ(bound_micro_batches(task, 1, {}, {.ranks = 3}).largest.rows, 101u);
}

TEST(BoundMicroBatches, OfLeavesAreTheirNumber) {
  const ListedTask task({unlike, {50, 50, 50}});
  for (const std::size_t steps : {2u, 1000u}) {
    const MicroBatchBounds bounds = bound_micro_batches(task, steps, {}, {.ranks = 2, .micro_batch_groups = 8});
    EXPECT_EQ(bounds.micro_batches, 4u);
    EXPECT_EQ(bounds.largest.samples, 2u);
  }
}

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
