#include "parallel/checkpoint/checkpoint_layout.hpp"
#include "parallel/checkpoint/checkpoint_writers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace mylos::parallel {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Ranks = std::vector<std::size_t>;

/// Returns placements with the given numbers of consecutive ranks on nodes.
std::vector<RankPlacement> placements_on(const Ranks& nodes) {
  std::vector<RankPlacement> placements;
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    for (std::size_t rank = 0; rank < nodes[node]; ++rank)
      placements.push_back({.host = "n", .node = node, .rank_of_node = rank});
  }
  return placements;
}

TEST(CheckpointWriters, AreFourANodeAndSixtyFourInAllByDefault) {
  EXPECT_THAT(choose_writers(placements_on({1}), 0), ElementsAre(0));
  EXPECT_THAT(choose_writers(placements_on({3}), 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(choose_writers(placements_on({8}), 0), ElementsAre(0, 0, 2, 2, 4, 4, 6, 6));
  EXPECT_EQ(count_writers(choose_writers(placements_on({128, 128, 2}), 0)), 10u);
  EXPECT_EQ(count_writers(choose_writers(placements_on(Ranks(16, 8)), 0)), 64u);
  EXPECT_EQ(count_writers(choose_writers(placements_on(Ranks(2500, 4)), 0)), 64u);
}

TEST(CheckpointWriters, AreAsManyAsAskedForAndOnTheRanksOwnNodes) {
  EXPECT_THAT(choose_writers(placements_on({2, 2}), 1), Each(0u));
  EXPECT_THAT(choose_writers(placements_on({2, 2}), 2), ElementsAre(0, 0, 2, 2));
  EXPECT_THAT(choose_writers(placements_on({2, 2}), 3), ElementsAre(0, 1, 2, 2));
  EXPECT_THAT(choose_writers(placements_on({2, 2}), 1000), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(choose_writers(placements_on({1, 4}), 4), ElementsAre(0, 1, 2, 3, 3));
  // Every second node has a writer.
  EXPECT_THAT(choose_writers(placements_on({2, 2, 2, 2}), 2), ElementsAre(0, 0, 0, 0, 4, 4, 4, 4));
}

TEST(CheckpointWriters, RanksThatAreDealtToNodesInTurnHaveWritersOnTheirNodes) {
  std::vector<RankPlacement> placements;
  for (std::size_t rank = 0; rank < 12; ++rank)
    placements.push_back({.host = "n", .node = rank % 2, .rank_of_node = rank / 2});
  const Ranks writer_of = choose_writers(placements, 4);
  EXPECT_EQ(count_writers(writer_of), 4u);
  for (std::size_t rank = 0; rank < 12; ++rank) EXPECT_EQ(writer_of[rank] % 2, rank % 2) << rank;
}

std::vector<WrittenRange> ranges_of(std::size_t elements, std::size_t ranks) {
  std::vector<WrittenRange> ranges;
  const std::size_t part = (elements + ranks - 1) / ranks;
  for (std::size_t first = 0; first < elements;) {
    const std::size_t owner = first / part, end = std::min({elements, (owner + 1) * part, first + checksum_elements});
    ranges.push_back({first, end - first, owner});
    first = end;
  }
  return ranges;
}

TEST(CheckpointWriters, ChunksHaveFourMebibytesWhereTheArrayIsThatLong) {
  for (const std::size_t ranks : {1, 3, 64, 1000}) {
    const Ranks writer_of = choose_writers(placements_on({ranks}), 0);
    for (const std::size_t elements : {1ul, 999'999ul, written_elements, 2 * written_elements - 1, 30'000'001ul}) {
      const std::vector<WrittenRange> ranges = ranges_of(elements, ranks);
      std::size_t next = 0;
      for (const WrittenChunk& chunk : cut_into_chunks(ranges, writer_of)) {
        EXPECT_EQ(chunk.first(), next);
        EXPECT_GE(chunk.count(), std::min(elements, written_elements));
        EXPECT_LE(chunk.count(), chunk_elements);
        EXPECT_EQ(writer_of[chunk.writer], chunk.writer);
        next += chunk.count();
      }
      EXPECT_EQ(next, elements);
    }
  }
}

TEST(CheckpointWriters, HaveAboutAsManyElementsEach) {
  constexpr std::size_t ranks = 1000, elements = 250'000'000;
  const std::vector<WrittenRange> ranges = ranges_of(elements, ranks);
  const Ranks writer_of = choose_writers(placements_on(Ranks(125, 8)), 0);
  std::map<std::size_t, std::size_t> written;
  for (const WrittenChunk& chunk : cut_into_chunks(ranges, writer_of)) written[chunk.writer] += chunk.count();
  EXPECT_EQ(written.size(), most_writers);
  for (const auto& [writer, count] : written) EXPECT_LT(count, 2 * elements / most_writers) << writer;
}

}  // namespace
}  // namespace mylos::parallel
