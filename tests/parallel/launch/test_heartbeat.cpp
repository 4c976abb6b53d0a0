#include "parallel/launch/heartbeat.hpp"

#include "tests/parallel/launch/simulated_watch.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <random>
#include <set>
#include <vector>

/// Heartbeats of simulated ranks: which ranks are named, by whom and when, and the number of messages.
namespace mylos::parallel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tests::SimulatedWatch;
using Activity = RankState::Activity;

/// In seconds. `patience` is that of 30 ranks.
constexpr double limit = 40.0, patience = 10.03;

const std::vector<std::size_t> sizes{2, 3, 4, 5, 8, 21, 64, 1000};

std::vector<std::size_t> range(std::size_t first, std::size_t end) {
  std::vector<std::size_t> ranks(end - first);
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

/// Runs without those ranks. Expects that the first rank names them in time, with a limited number of messages.
void expect_named(std::size_t size, const std::vector<std::size_t>& gone) {
  SCOPED_TRACE(testing::Message() << size << " ranks, " << gone.size() << " gone, the first of them " << gone.front());
  SimulatedWatch ranks(size, limit);
  for (const std::size_t rank : gone) ranks.stop(rank);
  ranks.run_to(limit + 40.0);
  ASSERT_EQ(ranks.teller(), std::size_t{0});
  EXPECT_EQ(ranks.late(), 0u);
  EXPECT_EQ(ranks.silent(), gone);
  EXPECT_LE(ranks.now(), limit + 10.5 + 0.001 * static_cast<double>(size));
  EXPECT_LE(ranks.messages(), 3 * size);
}

TEST(Heartbeat, StoppedRanksAreNamedByTheFirst) {
  for (const std::size_t size : sizes) {
    for (const std::size_t gone : std::set<std::size_t>{1, size / 2, size - 1}) expect_named(size, {gone});
    expect_named(size, range(1, size));
    expect_named(size, range((size + 1) / 2, size));
  }
}

TEST(Heartbeat, BeforeTheLimitNothingIsSent) {
  SimulatedWatch ranks(30, limit, 0.0);
  ranks.stop(0);
  ranks.run_to(limit - 0.2);
  EXPECT_EQ(ranks.messages(), 0u);
}

TEST(Heartbeat, DecidesWithThreeMessagesARank) {
  for (const std::size_t size : {2ul, 5ul, 64ul, 1000ul, 16384ul}) {
    SCOPED_TRACE(size);
    SimulatedWatch ranks(size, limit);
    ranks.set(size - 1, Activity::computing);
    ranks.run_to(limit + 40.0);
    ASSERT_EQ(ranks.teller(), std::size_t{0});
    EXPECT_THAT(ranks.silent(), IsEmpty());
    EXPECT_EQ(ranks.states().back().activity, Activity::computing);
    EXPECT_EQ(ranks.states().front().activity, Activity::waiting);
    EXPECT_LE(ranks.now(), limit + 10.5 + 0.001 * static_cast<double>(size));
    EXPECT_LE(ranks.messages(), 3 * size);
  }
}

TEST(Heartbeat, TheFirstRankNeedNotWaitItself) {
  for (const Activity activity : {Activity::computing, Activity::files}) {
    SimulatedWatch ranks(30, limit);
    ranks.set(0, activity, activity == Activity::files ? limit - 0.5 : 0.0);
    ranks.run_to(limit + patience + 1.0);
    ASSERT_EQ(ranks.teller().has_value(), activity == Activity::computing);
    if (ranks.teller()) {
      EXPECT_EQ(ranks.teller(), std::size_t{0});
      EXPECT_EQ(ranks.late(), 1u);
      EXPECT_EQ(ranks.states()[0].activity, Activity::computing);
    }
  }
}

TEST(Heartbeat, TheLowestRankThatHasWaitedTooLongIsTold) {
  SimulatedWatch ranks(30, limit);
  for (const std::size_t rank : {0u, 1u, 2u}) ranks.set(rank, Activity::computing);
  ranks.set(3, Activity::waiting, limit / 2);
  ranks.run_to(limit + patience + 1.0);
  ASSERT_EQ(ranks.teller(), std::size_t{0});
  EXPECT_EQ(ranks.late(), 4u);
  EXPECT_STREQ(ranks.states()[4].operation.data(), "all-reduce of layer 3 gradients");
}

TEST(Heartbeat, GroupsThatWaitInDifferentOperationsAreTold) {
  SimulatedWatch ranks(30, limit);
  for (std::size_t rank = 0; rank < 30; rank += 2) ranks.set_elsewhere(rank);
  ranks.run_to(limit + patience + 1.0);
  ASSERT_EQ(ranks.teller(), std::size_t{0});
  for (std::size_t rank = 0; rank < 30; ++rank) EXPECT_EQ(ranks.states()[rank].group, rank % 2 == 0 ? 2u : 0u);
}

TEST(Heartbeat, TimeWithFilesIsExcusedUntilTheFileSystemIsTakenToHang) {
  for (const std::size_t busy : {7u, 0u}) {
    SimulatedWatch ranks(30, limit);
    ranks.set(busy, Activity::files);
    ranks.run_to((file_patience + 1.0) * limit - 0.2);
    EXPECT_FALSE(ranks.teller());
    ranks.run_to((file_patience + 1.0) * limit + 2 * patience + 1.0);
    ASSERT_EQ(ranks.teller(), std::size_t{0});
    EXPECT_EQ(ranks.states()[busy].activity, Activity::files);
  }
}

TEST(Heartbeat, OnlyTheTimeWithFilesIsExcused) {
  SimulatedWatch ranks(30, limit);
  ranks.set(7, Activity::files);
  ranks.run_to(limit + 5.0);
  ranks.set(7, Activity::computing);
  ranks.run_to(2 * limit - 1.0);
  EXPECT_FALSE(ranks.teller());
  ranks.run_to(2 * limit + patience + 1.0);
  EXPECT_EQ(ranks.teller(), std::size_t{0});
}

TEST(Heartbeat, AnExcuseHoldsForTheWaitThatItWasGivenFor) {
  SimulatedWatch ranks(30, limit);
  ranks.set(7, Activity::files);
  ranks.run_to(limit + 1.0);
  ranks.next_operation();
  ranks.set(7, Activity::computing);
  ranks.run_to(2 * limit + 2.0 + patience);
  EXPECT_EQ(ranks.teller(), std::size_t{0});
}

TEST(Heartbeat, AnExcusedWaitCostsTwoMessagesARankNowAndThen) {
  SimulatedWatch ranks(1000, limit);
  ranks.set(999, Activity::files);
  ranks.run_to(limit + 1.0);
  const std::size_t before = ranks.messages();
  ranks.run_to(limit + 1.0 + 110.0);
  EXPECT_FALSE(ranks.teller());
  EXPECT_LE(ranks.messages() - before, 10 * 2 * 1000u + 1000u);
}

TEST(Heartbeat, ARankThatStopsWhileItWorksWithFilesIsNamed) {
  SimulatedWatch ranks(30, limit);
  ranks.set(7, Activity::files);
  ranks.run_to(limit + 5.0);
  EXPECT_FALSE(ranks.teller());
  ranks.stop(7);
  ranks.run_to(limit + 5.0 + 2.5 * patience);
  ASSERT_EQ(ranks.teller(), std::size_t{0});
  EXPECT_THAT(ranks.silent(), ElementsAre(7));
}

TEST(Heartbeat, WorkWithFilesDoesNotExcuseAnotherRankThatIsStopped) {
  SimulatedWatch ranks(30, limit);
  ranks.set(7, Activity::files);
  ranks.stop(8);
  ranks.run_to(limit + patience + 1.0);
  ASSERT_EQ(ranks.teller(), std::size_t{0});
  EXPECT_THAT(ranks.silent(), ElementsAre(8));
}

TEST(Heartbeat, AWaitThatEndsMeanwhileEndsNothing) {
  for (const bool first_waits : {true, false}) {
    SimulatedWatch ranks(30, limit);
    ranks.stop(29);
    if (!first_waits) ranks.set(0, Activity::computing);
    ranks.run_to(limit + patience / 2);
    EXPECT_GT(ranks.messages(), 0u);
    ranks.next_operation();
    ranks.run_to(limit + 3 * patience);
    EXPECT_FALSE(ranks.teller());
  }
}

/// By a batch system that runs another job meanwhile.
TEST(Heartbeat, RanksThatAreSuspendedTogetherGoOn) {
  SimulatedWatch ranks(30, limit);
  ranks.set(29, Activity::computing);
  ranks.run_to(limit - 0.5);
  ranks.suspend(3600.0);
  ranks.run_to(ranks.now() + 1.0);
  EXPECT_GT(ranks.messages(), 0u);
  ranks.next_operation();
  ranks.run_to(ranks.now() + limit - 0.5);
  EXPECT_FALSE(ranks.teller());
}

/// Others have been late for some time, and were excused or asked for.
TEST(Heartbeat, RanksThatAreSuspendedWhileOneIsAskedForGoOn) {
  for (const double after : {30.0, 3 * patience + 0.3}) {
    SimulatedWatch ranks(30, limit);
    ranks.set(29, Activity::files);
    ranks.run_to(limit + after);
    ASSERT_FALSE(ranks.teller());
    ranks.suspend(3 * limit);
    ranks.run_to(ranks.now() + 3 * patience);
    EXPECT_FALSE(ranks.teller()) << *ranks.teller();
  }
}

TEST(Heartbeat, LateMessagesAreWaitedFor) {
  SimulatedWatch ranks(30, limit);
  ranks.set(29, Activity::computing);
  for (const std::size_t rank : {0u, 7u}) ranks.delay(rank, 0.4 * patience);
  ranks.run_to(limit + 3 * patience);
  ASSERT_EQ(ranks.teller(), std::size_t{0});
  EXPECT_THAT(ranks.silent(), IsEmpty());
}

TEST(Heartbeat, ARankWhoseMessagesAreLostIsNamed) {
  SimulatedWatch ranks(30, limit);
  ranks.mute(7);
  ranks.run_to(limit + 1.5 * patience);
  ASSERT_EQ(ranks.teller(), std::size_t{0});
  EXPECT_THAT(ranks.silent(), ElementsAre(7));
}

TEST(Heartbeat, ARankThatComesBackIsNotNamed) {
  SimulatedWatch ranks(30, limit);
  ranks.set(29, Activity::computing);
  ranks.stop(7);
  ranks.run_to(limit + patience / 2);
  ranks.resume(7);
  ranks.run_to(limit + patience + 1.0);
  ASSERT_EQ(ranks.teller(), std::size_t{0});
  EXPECT_THAT(ranks.silent(), IsEmpty());
}

TEST(Heartbeat, WhereTheFirstRankDoesNotAnswerTheLowestThatWaitsTellsIt) {
  for (const std::size_t size : sizes) {
    for (const std::size_t gone : std::set<std::size_t>{1, size / 2, size - 1}) {
      SCOPED_TRACE(testing::Message() << gone << " of " << size << " ranks are gone");
      SimulatedWatch ranks(size, limit);
      for (std::size_t rank = 0; rank < gone; ++rank) ranks.stop(rank);
      ranks.run_to(4 * limit);
      ASSERT_TRUE(ranks.teller());
      EXPECT_EQ(ranks.late(), *ranks.teller());
      if (gone < 80) {
        EXPECT_EQ(*ranks.teller(), gone);
      }
      const double margin = 20.5 + 0.002 * static_cast<double>(size);
      EXPECT_LE(ranks.now(), limit + margin + 0.5 * static_cast<double>(gone));
      EXPECT_GE(ranks.now(), limit + 2 * 10.0);
    }
  }
}

TEST(Heartbeat, AFirstRankThatComesBackInTimeDecides) {
  SimulatedWatch ranks(30, limit);
  ranks.stop(0);
  ranks.run_to(limit + 1.5 * patience);
  ranks.resume(0);
  ranks.set(29, Activity::computing);
  ranks.run_to(limit + 2.6 * patience);
  ASSERT_EQ(ranks.teller(), std::size_t{0});
  EXPECT_THAT(ranks.silent(), IsEmpty());
}

TEST(Heartbeat, OtherRanksLeaveTheOneThatTellsTheTimeToEndTheProgram) {
  constexpr double short_limit = 2.0;
  for (const bool first_comes_back : {true, false}) {
    SimulatedWatch ranks(30, short_limit);
    ranks.stop(0);
    ranks.run_to(3 * short_limit);
    ASSERT_EQ(ranks.teller(), std::size_t{1});
    ranks.end(1);
    if (first_comes_back) ranks.resume(0);
    const double told = ranks.now();
    ranks.run_to(told + 2.9);
    EXPECT_FALSE(ranks.teller()) << *ranks.teller();
    for (std::size_t rank = 2; rank < 30; ++rank) EXPECT_EQ(ranks.failed(rank), 1u);
    ranks.run_to(told + 8.0);
    ASSERT_EQ(ranks.teller(), std::size_t{first_comes_back ? 0u : 2u}) << "the program goes on, so it is told again";
    if (first_comes_back) EXPECT_THAT(ranks.silent(), ElementsAre(1));
  }
}

TEST(Heartbeat, OneErrorReachesAllInOneMessageEach) {
  for (const std::size_t size : sizes) {
    for (const std::size_t failed : {std::size_t{0}, size / 3, size - 1}) {
      SimulatedWatch ranks(size, limit, 0.0);
      ranks.fail(failed);
      ranks.run_to(0.45);
      for (std::size_t rank = 0; rank < size; ++rank) ASSERT_EQ(ranks.failed(rank), failed);
      EXPECT_EQ(ranks.messages(), size - (failed == 0 ? 1 : 0));
    }
  }
}

TEST(Heartbeat, OfSeveralErrorsAllHearOfTheLowest) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::size_t size = 2 + random() % 200;
    SimulatedWatch ranks(size, limit, 0.0);
    std::size_t lowest = size;
    for (std::size_t count = 1 + random() % size; count > 0; --count) {
      const std::size_t rank = random() % size;
      ranks.fail(rank);
      lowest = std::min(lowest, rank);
    }
    ranks.run_to(0.45);
    for (std::size_t rank = 0; rank < size; ++rank) ASSERT_EQ(ranks.failed(rank), lowest);
    EXPECT_LE(ranks.messages(), 4 * size);
  }
}

}  // namespace
}  // namespace mylos::parallel
