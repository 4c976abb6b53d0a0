#include "parallel/launch/wait_report.hpp"

#include "tests/parallel/launch/simulated_watch.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace mylos::parallel {
namespace {

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
