#include "parallel/launch/wait_inquiry.hpp"

#include "core/base/quantities.hpp"
#include "tests/parallel/launch/simulated_watch.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <iostream>
#include <numeric>
#include <optional>
#include <set>
#include <string>

/// The inquiry on simulated ranks: which ranks are named, by whom and when, and the number of messages.
namespace mylos::parallel {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::SimulatedWatch;
using Activity = RankState::Activity;
using Kind = WatchMessage::Kind;

constexpr double limit = 40.0, patience = 10.0;

/// As many ranks as a run on one machine has, and many more. `many` is the least for which the tree of inquiries has as
/// many levels as for the 16,384 of the documentation, and a node.
constexpr std::size_t many = 6000;
const std::vector<std::size_t> sizes{2, 3, 4, 5, 8, 21, 64, 1000, many};

std::vector<std::size_t> range(std::size_t first, std::size_t end) {
  std::vector<std::size_t> ranks(end - first);
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

/// Runs without those ranks. Expects that they are named in time, with a limited number of messages.
void expect_named(std::size_t size, const std::vector<std::size_t>& gone) {
  SCOPED_TRACE(testing::Message() << size << " ranks, " << gone.size() << " gone, the first of them " << gone.front());
  SimulatedWatch ranks(size, limit);
  for (const std::size_t rank : gone) ranks.remove(rank);
  ranks.run_to(limit + 2.5 * patience);
  ASSERT_TRUE(ranks.teller());
  EXPECT_EQ(ranks.silent(), gone);
  std::size_t lowest = 0;
  for (const std::size_t rank : gone) lowest += rank == lowest ? 1 : 0;
  EXPECT_EQ(*ranks.teller(), lowest);
  const std::vector<std::size_t> heads = watch_heads(size);
  const auto is_gone = [&](std::size_t rank) { return std::binary_search(gone.begin(), gone.end(), rank); };
  if (is_gone(heads.front())) {
    // The others turn to the next head.
    EXPECT_LE(ranks.now(), limit + (std::all_of(heads.begin(), heads.end(), is_gone) ? 2.0 : 1.5) * patience);
  } else {
    EXPECT_LE(ranks.now(), limit + patience);
  }
  if (!std::all_of(heads.begin(), heads.end(), is_gone)) {
    EXPECT_LE(ranks.messages(), 8 * size);
  }
}

TEST(WaitInquiry, ARankThatIsGoneIsNamedWhereverItStandsInTheTree) {
  for (const std::size_t size : sizes) {
    for (const std::size_t gone : std::set<std::size_t>{0, 1, size / 4, size / 2, size - 1}) expect_named(size, {gone});
  }
}

TEST(WaitInquiry, SeveralRanksThatAreGoneAreNamed) {
  for (const std::size_t size : {std::size_t{8}, std::size_t{21}, std::size_t{1000}, many}) {
    expect_named(size, {0, 1});
    expect_named(size, {0, size / 2});
    expect_named(size, {1, 5});  // a parent and its child
    expect_named(size, range(1, size));
    expect_named(size, range(0, size / 2));
    expect_named(size, range(0, size - 1));
    expect_named(size, {0, size / 4, size / 2, size / 2 + size / 4});
  }
  for (const std::size_t first : {0ul, 128ul, 2560ul}) expect_named(many, range(first, first + 128));  // a node
}

TEST(WaitInquiry, MessagesGrowWithTheRanksAndEachRankHasFew) {
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    SimulatedWatch ranks(size, limit);
    ranks.set(size - 1, Activity::computing);
    ranks.run_to(limit + patience);
    ASSERT_TRUE(ranks.teller());
    EXPECT_EQ(*ranks.teller(), 0u);
    EXPECT_THAT(ranks.silent(), ElementsAre());
    EXPECT_EQ(ranks.verdict().back().activity, Activity::computing);
    EXPECT_EQ(ranks.sent_of(Kind::question), size - 1);
    EXPECT_EQ(ranks.sent_of(Kind::report), size - 1);
    EXPECT_LE(ranks.sent_of(Kind::alarm), size - 1);
    EXPECT_EQ(ranks.sent_of(Kind::taken), ranks.sent_of(Kind::alarm));
    EXPECT_EQ(ranks.sent_of(Kind::lead) + ranks.sent_of(Kind::own_question), 0u);
    EXPECT_LE(ranks.messages(), 4 * size);
    EXPECT_LE(ranks.most_messages(), 4 * WatchTree::arity);
  }
}

struct MessageCount {
  std::string all, of_one_rank;
};

/// Counts the messages of an inquiry. `gone` does not answer; without one, all answer and the last rank computes.
MessageCount count_messages(std::size_t size, std::optional<std::size_t> gone = std::nullopt) {
  SimulatedWatch ranks(size, limit);
  if (gone) {
    ranks.remove(*gone);
  } else {
    ranks.set(size - 1, Activity::computing);
  }
  ranks.run_to(limit + 2.5 * patience);
  return {count_text(ranks.messages()), count_text(ranks.most_messages())};
}

/// docs/faults.md has a table of these counts. The test prints its rows.
TEST(WaitInquiry, MessagesAreThoseOfTheDocumentation) {
  const std::string documentation = tests::read_file(tests::source_dir() / "docs/faults.md");
  for (const std::size_t size : {8ul, 64ul, 1024ul, 16384ul}) {
    const MessageCount late = count_messages(size), first = count_messages(size, 0), second = count_messages(size, 1);
    const std::string row =
        fmt::format("| {} | {} | {} | {} | {}, {}, {} | {} |", count_text(size), late.all, first.all, second.all,
                    late.of_one_rank, first.of_one_rank, second.of_one_rank, count_text(2 * size * (size - 1)));
    std::cout << row << '\n';
    EXPECT_THAT(documentation, HasSubstr(row));
  }
}

TEST(WaitInquiry, OneAlarmIsEnoughAndAnExcuseReachesAll) {
  for (const std::size_t size : sizes) {
    SCOPED_TRACE(size);
    for (const std::size_t alarmed : {std::size_t{0}, size - 1}) {
      SimulatedWatch ranks(size, limit);
      for (std::size_t rank = 0; rank < size; ++rank) {
        if (rank != alarmed) ranks.set(rank, Activity::files);
      }
      ranks.run_to(limit + patience / 2);
      EXPECT_FALSE(ranks.teller());
      for (std::size_t rank = 0; rank < size; ++rank) ASSERT_EQ(ranks.excuses(rank), 1u);
      EXPECT_EQ(ranks.messages(), 3 * (size - 1) + 2 * WatchTree(size, 0).level(alarmed));
    }
  }
}

TEST(WaitInquiry, TimeWithFilesIsExcusedUntilTheFileSystemIsTakenToHang) {
  SimulatedWatch ranks(30, limit);
  ranks.set(7, Activity::files);
  ranks.run_to(file_patience * limit);
  EXPECT_FALSE(ranks.teller());
  EXPECT_EQ(ranks.excuses(29), 5u);
  ranks.run_to((file_patience + 1.0) * limit + patience);
  ASSERT_EQ(ranks.teller(), std::size_t{0});
  EXPECT_EQ(ranks.verdict()[7].activity, Activity::files);
}

TEST(WaitInquiry, OnlyTheTimeWithFilesIsExcused) {
  SimulatedWatch ranks(30, limit);
  ranks.set(7, Activity::files);
  ranks.run_to(limit + 5.0);
  EXPECT_EQ(ranks.excuses(0), 1u);
  ranks.set(7, Activity::computing);
  ranks.run_to(2 * limit - 1.0);
  EXPECT_FALSE(ranks.teller());
  ranks.run_to(2 * limit + patience);
  EXPECT_EQ(ranks.teller(), std::size_t{0});
}

TEST(WaitInquiry, ARankThatStopsWhileItWorksWithFilesIsNamed) {
  SimulatedWatch ranks(30, limit);
  ranks.set(7, Activity::files);
  ranks.run_to(limit + 5.0);
  EXPECT_EQ(ranks.excuses(0), 1u);
  ranks.remove(7);
  ranks.run_to(3 * limit);
  ASSERT_EQ(ranks.teller(), std::size_t{0});
  EXPECT_THAT(ranks.silent(), ElementsAre(7));
}

TEST(WaitInquiry, TheLowestRankThatHasWaitedTooLongTells) {
  SimulatedWatch ranks(30, limit);
  for (const std::size_t rank : {0u, 1u, 2u}) ranks.set(rank, Activity::computing);
  ranks.set(3, Activity::waiting, limit / 2);
  ranks.run_to(limit + patience);
  ASSERT_EQ(ranks.teller(), std::size_t{4});
  EXPECT_EQ(ranks.verdict()[0].activity, Activity::computing);
  EXPECT_EQ(ranks.verdict()[4].operation, "all-reduce of layer 3 gradients");
}

TEST(WaitInquiry, AWaitThatEndsMeanwhileEndsNothing) {
  for (const bool rank_0_waits : {true, false}) {
    SimulatedWatch ranks(30, limit);
    ranks.set(29, Activity::computing);
    if (!rank_0_waits) ranks.set(0, Activity::computing);
    ranks.run_to(limit + patience / 2);
    EXPECT_GT(ranks.messages(), 0u);
    ranks.next_operation();
    ranks.run_to(limit + 3 * patience);
    EXPECT_FALSE(ranks.teller());
  }
}

TEST(WaitInquiry, BeforeTheLimitNothingIsSent) {
  SimulatedWatch ranks(30, limit, 0.0);
  ranks.remove(0);
  ranks.run_to(limit - 0.5);
  EXPECT_EQ(ranks.messages(), 0u);
}

/// The first rank is asked by ranks that believe it is gone.
TEST(WaitInquiry, ARankThatComesBackIsNotNamed) {
  SimulatedWatch ranks(30, limit);
  ranks.set(29, Activity::computing);
  ranks.remove(0);
  ranks.run_to(limit + 0.3 * patience);
  ranks.bring_back(0);
  ranks.run_to(limit + 1.5 * patience);
  ASSERT_TRUE(ranks.teller());
  EXPECT_THAT(ranks.silent(), ElementsAre());
}

}  // namespace
}  // namespace mylos::parallel
