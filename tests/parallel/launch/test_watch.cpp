#include "tests/support/ranks.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/waiting.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

/// The reaction of the other ranks to a missing rank.
namespace mylos::tests {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using Words = std::vector<std::string>;

constexpr std::size_t most_ranks = 4;
constexpr const char* gone =
    "mylos: error: rank 3 \\(process [0-9]+\\) on .* is gone; its output, .* waits in: step 3, "
    "all-reduce of layer 3 gradients, 4.0 MiB";

class FailingRanks : public ::testing::Test {
 protected:
  /// Returns standard error of a run in which the last rank fails like this.
  std::string errors_of(const std::string& how) {
    const ProgramRun run = run_ranks(ranks_, {how, directory_.path().string()}, MYLOS_FAILING_RANKS);
    exit_code_ = run.exit_code;
    return run.errors;
  }

  /// Like errors_of. `codes_` then has a line with the exit code of each of the first `count` ranks that could report
  /// it.
  std::string errors_with_codes(const std::string& how, std::size_t count) {
    const std::string command =
        "\"$0\" \"$@\"; echo $? > '" + (directory_ / "code.").string() + "'$OMPI_COMM_WORLD_RANK";
    const ProgramRun run =
        run_ranks(ranks_, {"-c", command, MYLOS_FAILING_RANKS, how, directory_.path().string()}, "/bin/sh");
    output_ = run.output;
    for (std::size_t rank = 0; rank < count; ++rank) codes_ += read_file(directory_ / ("code." + std::to_string(rank)));
    return run.errors;
  }

  /// The last rank disappears silently. The others must report it and end with an error, while mpirun leaves them
  /// alone, prints nothing and ends with 0. A rank that ends the launch may leave others no time to report their exit
  /// codes.
  void expect_named_by_its_peers(const std::string& how) {
    const OthersSurvive others;
    EXPECT_THAT(errors_with_codes(how, ranks_ - 1), ContainsRegex(gone));
    EXPECT_THAT(codes_, MatchesRegex("(1\n)+"));
  }

  void TearDown() override {
    for (std::size_t rank = 0; rank < most_ranks; ++rank) {
      const long process = std::stol("0" + read_file(directory_ / std::to_string(rank)));
      EXPECT_TRUE(wait_until([&] { return !is_running(process); }))
          << "rank " << rank << ", process " << process << ", is still there";
    }
  }

  std::size_t ranks_ = 4;
  int exit_code_ = 0;
  std::string codes_, output_;
  TemporaryDirectory directory_;
};

TEST_F(FailingRanks, NoneFails) {
  errors_of("not at all");
  EXPECT_EQ(exit_code_, 0);
}

TEST_F(FailingRanks, AStoppedRankIsNamedWithWhatOthersWaitFor) {
  const std::string errors = errors_of("stop");
  EXPECT_THAT(errors,
              ContainsRegex("mylos: error: rank 3 on .* has not reached: step 3, all-reduce of layer 3 gradients, 4.0 "
                            "MiB; ranks 0, 1, 2 wait since [0-9]+ s; no response"));
  EXPECT_THAT(errors, ContainsRegex("rank 1 on .*: waits in step 3, all-reduce of layer 3 gradients, 4.0 MiB, since"));
  EXPECT_NE(exit_code_, 0);
}

/// MPI calls that wait for other ranks inside the library, in which the second of two ranks stops.
class StoppedInMpi : public FailingRanks, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer wants to be loaded first";
    ranks_ = 2;
  }
  const EnvironmentVariable preload_{"LD_PRELOAD", MYLOS_STOP_IN_MPI}, call_{"MYLOS_STOP_IN", GetParam()};
};

using StoppedBeforeTheEnd = StoppedInMpi;
using StoppedAtTheEnd = StoppedInMpi;

TEST_P(StoppedBeforeTheEnd, EndsTheProgramWithOneLine) {
  const std::string errors = errors_of("not at all");
  EXPECT_THAT(errors,
              ContainsRegex(fmt::format("mylos: error: rank 0: {} has not returned for [0-9]+ s: another rank has "
                                        "not reached it, .*; a longer `collective-timeout` would wait\n",
                                        GetParam())));
  EXPECT_THAT(errors, Not(ContainsRegex("mylos: error: .*\n.*mylos: error: "))) << "one line names them";
  EXPECT_NE(exit_code_, 0);
}

INSTANTIATE_TEST_SUITE_P(Calls, StoppedBeforeTheEnd,
                         ::testing::Values("MPI_Init", "MPI_Comm_dup", "MPI_Comm_split_type", "MPI_Allgather"));

class StoppedInSplit : public StoppedInMpi {};

/// The communication thread would block in it.
TEST_P(StoppedInSplit, IsNeverReachedBecauseNoRankCallsIt) {
  EXPECT_THAT(errors_of("split"), Not(HasSubstr("mylos: error")));
  EXPECT_EQ(exit_code_, 0);
}

INSTANTIATE_TEST_SUITE_P(Calls, StoppedInSplit, ::testing::Values("MPI_Comm_split"));

/// The node's name comes from the environment, and its escapes must not reach the terminal.
TEST_F(FailingRanks, ARankThatStopsBeforeASplitIsNamedWithoutEscapes) {
  const EnvironmentVariable node("SLURMD_NODENAME", "n\x1b]0;t\x07");
  const std::string errors = errors_of("stop-split");
  EXPECT_THAT(errors,
              ContainsRegex("mylos: error: rank 3 on n]0;t has not reached: step 3, all-gather of the members of "
                            "groups, .*; ranks 0, 1, 2 wait since [0-9]+ s; no response"));
  EXPECT_THAT(errors, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x07"))));
  EXPECT_NE(exit_code_, 0);
}

/// All ranks have come to their end before, so nothing is lost.
TEST_P(StoppedAtTheEnd, LeavesTheExitCodeAndTheResults) {
  const std::string errors = errors_with_codes("results", 1);
  EXPECT_THAT(errors,
              ContainsRegex(fmt::format("mylos: rank 0: {} has not returned for [0-9]+ s: all ranks have completed "
                                        "their work, so this one ends with exit code 85\n",
                                        GetParam())));
  EXPECT_THAT(errors, Not(HasSubstr("mylos: error")));
  EXPECT_EQ(codes_, "85\n");
  EXPECT_THAT(output_, HasSubstr("the results\n"));
}

INSTANTIATE_TEST_SUITE_P(Calls, StoppedAtTheEnd, ::testing::Values("MPI_Finalize"));

class CrayMpich : public FailingRanks {
 protected:
  void SetUp() override {
    if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer wants to be loaded first";
  }
  const EnvironmentVariable preload_{"LD_PRELOAD", MYLOS_STOP_IN_MPI}, gpus_{"MPICH_GPU_SUPPORT_ENABLED", "1"};
};

TEST_F(CrayMpich, NeedsNoLibraryForDeviceMemory) {
  EXPECT_THAT(errors_of("not at all"), Not(HasSubstr("GTL")));
  EXPECT_EQ(exit_code_, 0);
}

TEST_F(CrayMpich, KeepsItsSupportOfGpusWhereItIsAskedTo) {
  const EnvironmentVariable kept("MYLOS_KEEP_MPICH_GPU_SUPPORT", "1");
  EXPECT_THAT(errors_of("not at all"), HasSubstr("GTL library is not linked"));
  EXPECT_NE(exit_code_, 0);
}

// Open MPI continues stopped ranks before it ends them; these then noticed that others were gone. Heartbeat has others.
TEST_F(FailingRanks, StoppedRanksAreNamedInOneLineAlsoIfTheyAreRevived) {
  const ProgramRun run = run_ranks(4, {"stop-revived", directory_.path().string(), "0", "2"}, MYLOS_FAILING_RANKS);
  EXPECT_THAT(run.errors, ContainsRegex("mylos: error: rank 0 on [^,;]*, which all ranks report to, gives no response: "
                                        "stopped, or disconnected; rank 1 waits since [0-9]+ s in: step 3, all-reduce "
                                        "of layer 3 gradients, 4.0 MiB\n"));
  EXPECT_THAT(run.errors, Not(ContainsRegex("mylos: error: .*\n.*mylos: error: "))) << "one line names them";
  EXPECT_NE(run.exit_code, 0);
}

TEST_F(FailingRanks, AKilledRankIsNamedByItsPeers) {
  if (!OthersSurvive::is_possible()) GTEST_SKIP() << "this launcher ends the other ranks itself";
  expect_named_by_its_peers("kill");
}

TEST_F(FailingRanks, ARankThatLeavesWithoutAnErrorIsNamedByItsPeers) {
  if (!OthersSurvive::is_possible()) GTEST_SKIP() << "this launcher ends the other ranks itself";
  expect_named_by_its_peers("exit");
}

TEST_F(FailingRanks, ARankThatEndsWithAnErrorTellsItAndOthersEnd) {
  EXPECT_THAT(errors_of("throw"), HasSubstr("mylos: error: this rank's own error"));
  EXPECT_NE(exit_code_, 0);
}

TEST_F(FailingRanks, AnErrorOfAllRanksIsNotAFaultOfAny) {
  EXPECT_THAT(errors_of("all-throw"), AllOf(HasSubstr("mylos: error: the same error on every rank"),
                                            Not(HasSubstr("is gone")), Not(HasSubstr("has not reached"))));
  EXPECT_EQ(exit_code_, 1);
}

TEST_F(FailingRanks, ARankThatComputesForTooLongIsNamed) {
  EXPECT_THAT(errors_of("compute"),
              AllOf(ContainsRegex("rank 3 on .* has not reached: step 3, .*; still computing"),
                    ContainsRegex("rank 3 on .*: step 3, computes since [0-9.]+ s, after all-reduce of layer 3")));
}

// Ranks that waited for a save were reported as a hung exchange (accelerate 3250, pytorch 143536).
TEST_F(FailingRanks, ASlowDiskIsWaitedFor) {
  EXPECT_THAT(errors_of("files"), Not(HasSubstr("mylos: error")));
  EXPECT_EQ(exit_code_, 0);
}

// Tokenising for more than six limits was reported as a file system that hangs.
TEST_F(FailingRanks, WorkThatProgressesIsWaitedForHoweverLong) {
  EXPECT_THAT(errors_of("files-work"), Not(HasSubstr("mylos: error")));
  EXPECT_EQ(exit_code_, 0);
}

TEST_F(FailingRanks, AFileSystemThatHangsIsToldInTheEnd) {
  EXPECT_THAT(errors_of("files-hang"),
              AllOf(ContainsRegex("rank 3 on .* has not reached: .*; working on files for [0-9]+ s, without progress "
                                  "for [0-9]+ s: the file system"),
                    ContainsRegex("rank 3 on .*: step 3, working on files since [0-9.]+ s, after all-reduce of")));
}

/// The ranks have no error until the end, and cannot end together.
TEST_F(FailingRanks, TheLastErrorHasNoEscapesAndTheRanksDoNotEndWellAfterIt) {
  if (!OthersSurvive::is_possible()) GTEST_SKIP() << "this launcher ends the other ranks itself";
  const OthersSurvive others;
  const std::string errors = errors_with_codes("last barrier", ranks_);
  EXPECT_THAT(errors, ContainsRegex("mylos: error: barrier.*: MPI_Isend: a plug]0;t was pulled\n"));
  EXPECT_THAT(errors, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x07"))));
  EXPECT_THAT(codes_, MatchesRegex("(1\n)+"));
}

TEST_F(FailingRanks, RanksInOtherOperationsAreTold) {
  EXPECT_THAT(errors_of("elsewhere"), AllOf(HasSubstr("waiting elsewhere; see the lines below"),
                                            HasSubstr("waits in step 3, barrier at the wrong place")));
}

}  // namespace
}  // namespace mylos::tests
