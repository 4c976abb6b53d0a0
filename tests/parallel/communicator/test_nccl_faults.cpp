#include "tests/support/ranks.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>
#include <utility>

/// If NCCL, a communicator or the device fails on one rank, the run ends with one clear line and never hangs.
namespace mylos::tests {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

struct Ended {
  int exit_code = 0;
  std::string errors;
};

/// Runs two ranks that sum arrays in two groups in each of five steps, with a fault on `rank`. For `order` see
/// failing_nccl.cpp.
Ended with_variable(std::size_t rank, const std::string& name, const std::string& value,
                    const std::string& order = "library", std::size_t ranks = 2) {
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  const EnvironmentVariable folders("LD_LIBRARY_PATH",
                                    std::string(MYLOS_NCCL_FOLDER) + (path == nullptr ? "" : ":" + std::string(path)));
  const EnvironmentVariable threads("OMP_NUM_THREADS", "1");
  const ProgramRun run = run_ranks(ranks, {std::to_string(rank), name, value, order}, MYLOS_FAILING_NCCL);
  EXPECT_THAT(run.errors, AllOf(Not(HasSubstr("still at work")), Not(HasSubstr("stand-in for NCCL"))));
  return {run.exit_code, run.errors};
}

Ended with_fault(std::size_t rank, const std::string& fault, const std::string& order = "library") {
  return with_variable(rank, "NCCL_STAND_IN_FAULT", fault, order);
}

/// Returns the ranks' messages of a run that `fault` ends, with one error.
std::string errors_of_fault(const std::string& fault, const std::string& order = "library") {
  const Ended ended = with_fault(1, fault, order);
  EXPECT_NE(ended.exit_code, 0);
  const std::size_t first = ended.errors.find("mylos: error: ");
  EXPECT_EQ(ended.errors.find("mylos: error: ", first + 1), std::string::npos) << ended.errors;
  return ended.errors;
}

TEST(NcclFaults, NeitherSumsOfGroupsNorAnEndThatTakesSecondsAreErrors) {
  const Ended ended = with_fault(1, "finalize", "group");
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  EXPECT_THAT(ended.errors, Not(HasSubstr("error")));
}

TEST(NcclFaults, AnIdThatCannotBeMadeIsTheSameErrorOnAllRanks) {
  const Ended ended = with_fault(0, "id");
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.errors,
              AllOf(HasSubstr("mylos: error: NCCL: making a group's id: unhandled system error (stand-in: injected); "
                              "NCCL_DEBUG=INFO in the environment says more; `communicator mpi` exchanges"),
                    Not(HasSubstr("has not reached")), Not(HasSubstr("is gone"))));
}

TEST(NcclFaults, AConnectionThatFailsIsTold) {
  const std::string errors = errors_of_fault("init");
  EXPECT_THAT(errors,
              HasSubstr("mylos: error: rank 1: NCCL connection of the devices: NCCL: connecting devices: unhandled "
                        "system error (stand-in: injected); NCCL_DEBUG=INFO"));
}

TEST(NcclFaults, AConnectionThatNeverComesIsTold) {
  EXPECT_THAT(errors_of_fault("connect"), HasSubstr("mylos: error: NCCL connection of the devices: not finished 1 s "
                                                    "after the trial began; `communicator mpi` exchanges"));
}

/// The rank that has no fault must not wait for the other one for ever, and its communication thread must go on. A call
/// that fails, and an operation that never ends; the next test has an error of the communicator.
TEST(NcclFaults, RanksGoOnOverMpiIfTheStartFails) {
  for (const auto& [fault, error] : {std::pair("call:3", "internal error"), std::pair("hang:2", "not finished 1 s")}) {
    const Ended ended = with_fault(1, fault, "start");
    EXPECT_EQ(ended.exit_code, 0) << fault << ": " << ended.errors;
    EXPECT_THAT(ended.errors, AllOf(ContainsRegex("goes on without NCCL: (.*\n)*goes on without NCCL: "),
                                    HasSubstr(error), Not(HasSubstr("mylos: error"))));
  }
}

TEST(NcclFaults, AnAbortThatNeverReturnsAtTheStartEndsTheRun) {
  const Ended ended = with_fault(1, "async:2,abort", "start");
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.errors, ContainsRegex("mylos: error: rank 1: NCCL .*: stopped, but has not ended for 5 s; NCCL or "
                                          "the device has not ended its work for [0-9]+ s"));
}

/// Within a group of messages, which must be ended all the same.
TEST(NcclFaults, AMessageThatFailsIsToldWithItsOperation) {
  EXPECT_THAT(errors_of_fault("send:5", "tree"),
              ContainsRegex("mylos: error: NCCL all-reduce of layer 3 gradients: NCCL: .*: internal error \\(stand-in: "
                            "injected\\); NCCL_DEBUG=INFO"));
}

TEST(NcclFaults, ACallOfAGroupThatFailsIsToldAndEndsTheGroup) {
  // The call that ends the group, and the second of the calls within it. An open group would fail the stand-in's abort.
  for (const char* const fault : {"call:3", "second:3"}) {
    EXPECT_THAT(errors_of_fault(fault, "group"),
                ContainsRegex("mylos: error: NCCL all-reduce of layer 3 gradients and 2 more: NCCL: .*: internal error "
                              "\\(stand-in: injected\\); NCCL_DEBUG=INFO"));
  }
}

/// The call of a collective.
TEST(NcclFaults, AnExchangeOfHostsBesideACallThatFailsWritesNothingAfterwards) {
  EXPECT_THAT(errors_of_fault("call:5", "agreement"),
              AllOf(ContainsRegex("mylos: error: NCCL all-reduce of layer 3 gradients: NCCL: .*: internal error "
                                  "\\(stand-in: injected\\); NCCL_DEBUG=INFO"),
                    Not(HasSubstr("an array was written")), Not(HasSubstr("not seen"))));
}

TEST(NcclFaults, AGroupThatNeverEndsEndsAtTheTimeLimit) {
  EXPECT_THAT(
      errors_of_fault("hang:3", "group"),
      ContainsRegex("mylos: error: all ranks have reached: step [2-5], NCCL all-reduce of layer 3 gradients and "
                    "2 more, 384.0 KiB; but it has not finished for [0-9]+ s: NCCL \\(NCCL_DEBUG=INFO says more\\)"));
}

TEST(NcclFaults, AnErrorOfTheCommunicatorEndsItsOperation) {
  const std::string errors = errors_of_fault("async:3");
  EXPECT_THAT(errors, HasSubstr("mylos: error: NCCL all-reduce of layer 3 gradients: NCCL: between devices: remote "
                                "process exited (stand-in: injected); NCCL_DEBUG=INFO"));
}

TEST(NcclFaults, AnErrorOfTheDeviceIsTold) {
  const std::string errors = errors_of_fault("device:3");
  // Each operation under way shows it.
  EXPECT_THAT(errors, ContainsRegex("mylos: error: NCCL all-reduce of (layer 3 gradients|sums of the second group): "
                                    "CUDA: on the device: unspecified launch failure"));
}

TEST(NcclFaults, AnAbortThatNeverReturnsEndsWithTheErrorOfTheOperation) {
  const std::string errors = errors_of_fault("async:3,abort");
  EXPECT_THAT(errors,
              ContainsRegex("mylos: error: rank 1: NCCL all-reduce of layer 3 gradients: NCCL: between devices: "
                            "remote process exited .*; NCCL or the device has not ended its work for [0-9]+ s"));
}

TEST(NcclFaults, ADestroyThatNeverReturnsEndsAtTheTimeLimit) {
  EXPECT_THAT(errors_of_fault("destroy"),
              ContainsRegex("mylos: error: rank 1 on .* has not reached: step 5, barrier at the end of the program"
                            "(.*\n)+.*rank 1 on .*: waits in step 5, NCCL disconnection of the devices"));
}

TEST(NcclFaults, AnErrorOfARankAloneIsToldWhateverNcclDoes) {
  EXPECT_THAT(errors_of_fault("throw:3,destroy"), HasSubstr("mylos: error: an error of its own\n"));
}

/// The ranks of the other group must not go on without those that fail.
TEST(NcclFaults, AWrongSumInAGroupOfSomeRanksEndsAll) {
  const Ended ended = with_variable(2, "NCCL_STAND_IN_FAULT", "wrong", "mesh", 4);
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.errors,
              AllOf(ContainsRegex("mylos: error: rank 2: .*NCCL: 1 of 1310723 elements of sums in float32"),
                    Not(HasSubstr("has not reached"))));
}

TEST(NcclFaults, GroupsOfTheSameRanksShareAConnection) {
  const Ended ended = with_variable(1, "CUDA_STAND_IN_MEMORY", "1500000", "shared");  // enough for one
  EXPECT_EQ(ended.exit_code, 0) << ended.errors;
}

TEST(NcclFaults, ADeviceWithoutMemoryForASecondConnectionIsTold) {
  const Ended ended = with_variable(1, "CUDA_STAND_IN_MEMORY", "1500000");
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.errors, HasSubstr("mylos: error: NCCL connection of the devices: NCCL: between devices: unhandled "
                                      "cuda error (stand-in: out of memory); NCCL_DEBUG=INFO"));
}

TEST(NcclFaults, AKilledRankIsNamedByItsPeer) {
  if (!OthersSurvive::is_possible()) GTEST_SKIP() << "this launcher ends the other ranks itself";
  const OthersSurvive others;
  EXPECT_THAT(with_fault(1, "kill:3").errors, ContainsRegex("mylos: error: rank 1 \\(process [0-9]+\\) on .* is gone"));
}

/// NcclLibrary.OfAnotherMajorVersionIsRefused tests a version that this build cannot use.
TEST(NcclFaults, AnotherVersionOnOneRankIsTold) {
  const Ended ended = with_variable(1, "NCCL_STAND_IN_VERSION", "22203");
  EXPECT_NE(ended.exit_code, 0);
  EXPECT_THAT(ended.errors,
              HasSubstr("mylos: error: rank 1: NCCL is 2.22.3 on this rank and 2.28.9 on the first one; give all "
                        "nodes the same (LD_LIBRARY_PATH), or let device arrays go through MPI"));
}

}  // namespace
}  // namespace mylos::tests
