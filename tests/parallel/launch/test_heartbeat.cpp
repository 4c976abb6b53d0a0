#include "parallel/launch/heartbeat.hpp"

#include "tests/parallel/launch/simulated_watch.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <random>
#include <set>
#include <string>
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

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Activity = RankState::Activity;

RankState state(Activity activity, std::size_t step, const std::string& operation, std::size_t bytes) {
  RankState state = tests::state_of(activity, operation);
  state.step = step;
  state.bytes = bytes;
  return state;
}

RankState waiting(std::uint64_t sequence = 7) {
  RankState waiting = state(Activity::waiting, 31, "all-reduce of layer 3 gradients", std::size_t{28} << 20);
  waiting.sequence = sequence;
  waiting.seconds = 12.3;
  return waiting;
}

RankState other(Activity activity) {
  RankState other = state(activity, 30, "all-reduce of layer 9 gradients", 100);
  other.sequence = 5;
  other.seconds = 40.0;
  return other;
}

/// Ranks on n1 wait in layer 3, the others are on n2.
std::vector<std::string> describe(const std::vector<RankState>& ranks) {
  std::vector<RankPlacement> placements;
  for (const RankState& each : ranks) placements.push_back({.host = each.seconds == 12.3 ? "n1" : "n2"});
  return describe_wait(ranks, placements, 0);
}

TEST(WaitReport, ARankThatDoesNotAnswerIsNamedWithWhatOthersWaitFor) {
  const std::vector<RankState> ranks{waiting(), waiting(), other(Activity::silent), waiting()};
  EXPECT_THAT(describe(ranks),
              ElementsAre("rank 2 on n2 has not reached: step 31, all-reduce of layer 3 gradients, 28.0 MiB; ranks 0, "
                          "1, 3 wait since 12 s; no response: stopped, or disconnected",
                          "  rank 0 on n1: waits in step 31, all-reduce of layer 3 gradients, 28.0 MiB, since 12.3 s",
                          StartsWith("  rank 1 on n1: waits in step 31"), "  rank 2 on n2: no answer",
                          StartsWith("  rank 3 on n1: waits in step 31")));
}

TEST(WaitReport, ARankThatComputesIsNamedAndTheLimit) {
  const std::vector<RankState> ranks{waiting(), other(Activity::computing)};
  const std::vector<std::string> lines = describe(ranks);
  EXPECT_THAT(lines[0], AllOf(StartsWith("rank 1 on n2 has not reached: step 31"), HasSubstr("rank 0 waits since 12 s"),
                              HasSubstr("`collective-timeout`")));
  EXPECT_EQ(lines[2], "  rank 1 on n2: step 30, computes since 40.0 s, after all-reduce of layer 9 gradients");
}

TEST(WaitReport, TimeWithFilesIsExcusedUpToABound) {
  RankState at_disk = other(Activity::files);
  at_disk.file_seconds = 25.0;
  const std::vector<RankState> ranks{waiting(), at_disk, other(Activity::computing)};
  EXPECT_EQ(excused_seconds(ranks, 10.0), 25.0);
  EXPECT_EQ(excused_seconds(ranks, 2.0), 2.0 * file_patience);
  EXPECT_EQ(excused_seconds(std::vector<RankState>{waiting()}, 10.0), 0.0);
  EXPECT_THAT(describe(ranks)[0], AllOf(StartsWith("rank 1 on n2 has not reached"),
                                        HasSubstr("working on files for 25 s, without progress for 25 s: ")));
  EXPECT_EQ(describe(ranks)[2],
            "  rank 1 on n2: step 30, working on files since 40.0 s, after all-reduce of layer 9 gradients");
}

TEST(WaitReport, TimeWithFilesIsExcusedAsLongAsTheyProgress) {
  RankState at_disk = other(Activity::files);
  at_disk.file_seconds = 1000.0;
  at_disk.progress_seconds = 990.0;
  const std::vector<RankState> ranks{waiting(), at_disk};
  EXPECT_EQ(excused_seconds(ranks, 2.0), 1000.0);
  at_disk.progress_seconds = 900.0;
  EXPECT_EQ(excused_seconds({&at_disk, 1}, 2.0), 900.0 + 2.0 * file_patience);
  EXPECT_THAT(describe(std::vector{waiting(), at_disk})[0],
              HasSubstr("working on files for 1000 s, without progress for 100 s: the file system hangs"));
}

TEST(WaitReport, AStoppedRankIsTheCauseWhereOthersWaitInOtherOperations) {
  const std::vector<RankState> ranks{waiting(), other(Activity::waiting), other(Activity::silent)};
  EXPECT_THAT(describe(ranks)[0], StartsWith("rank 2 on n2 has not reached"));
}

TEST(WaitReport, RanksThatWaitForEachOtherAreTold) {
  const std::vector<RankState> ranks{waiting(7), waiting(8)};
  EXPECT_THAT(describe(ranks)[0],
              AllOf(StartsWith("rank 1 on n1 has not reached"), HasSubstr("waiting elsewhere; see the lines below")));
}

TEST(WaitReport, AllMayBeThereAndYetItDoesNotEnd) {
  const std::vector<RankState> ranks{waiting(), waiting()};
  EXPECT_THAT(describe(ranks)[0], AllOf(StartsWith("all ranks have reached: step 31"), HasSubstr("12 s"),
                                        HasSubstr("MPI or the network hangs")));
}

TEST(WaitReport, WhereNcclDoesNotGoOnItSaysHowToHearMore) {
  std::vector<RankState> ranks{waiting(), waiting()};
  for (RankState& rank : ranks) {
    rank = state(Activity::waiting, 31, "NCCL all-reduce of layer 3 gradients", 4096);
  }
  EXPECT_THAT(describe(ranks)[0], HasSubstr("NCCL (NCCL_DEBUG=INFO says more) or the network"));
}

TEST(WaitReport, AReportOfManyRanksIsCut) {
  const std::vector<RankState> ranks(1000, waiting());
  const std::vector<std::string> lines = describe(ranks);
  EXPECT_EQ(lines.size(), 66u);
  EXPECT_EQ(lines.back(), "  and 936 more");
}

TEST(WaitReport, BeforeTheFirstStepThereIsNone) {
  EXPECT_EQ(activity_text(state(Activity::waiting, 0, "barrier of the start", 0)), "barrier of the start");
  EXPECT_EQ(activity_text(state(Activity::computing, 3, "", 0)), "step 3, no operation");
  EXPECT_EQ(activity_text(state(Activity::waiting, 0, "gather", 2048)), "gather, 2.0 KiB");
}

}  // namespace
}  // namespace mylos::parallel
