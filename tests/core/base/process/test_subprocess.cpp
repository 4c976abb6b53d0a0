#include "core/base/process/subprocess.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "tests/support/temporary.hpp"

namespace mylos {
namespace {

TEST(Subprocess, CapturesBothStreamsAndTheExitCode) {
  const auto result = run_process({"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
  EXPECT_EQ(result.exit_code, 3);
}

TEST(Subprocess, ArgumentsReachTheProgramAsTheyAre) {
  EXPECT_EQ(run_process({"printf", "%s|%s", "a b; rm -rf \"$HOME\"", ""}).output, "a b; rm -rf \"$HOME\"|");
}

TEST(Subprocess, MuchOnBothStreamsDoesNotBlock) {
  const auto result = run_process({"sh", "-c",
                                   "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789 >&2; "
                                   "echo 0123456789012345678901234567890123456789; i=$((i+1)); done"});
  EXPECT_EQ(result.output.size(), 3000u * 41);
  EXPECT_EQ(result.errors.size(), 3000u * 41);
}

TEST(Subprocess, StandardInputIsEmpty) { EXPECT_EQ(run_process({"cat"}).output, ""); }

TEST(Subprocess, StandardInputIsWhatWasGiven) {
  const std::string text(200'000, 'a');  // exceeds the capacity of a pipe
  EXPECT_EQ(run_process({"cat"}, text).output, text);
}

TEST(Subprocess, BlocksTheSignalsThatWereBlockedWhenThisProgramStarted) {
  EXPECT_EQ(run_process({"grep", "SigBlk", "/proc/self/status"}).output, "SigBlk:\t0000000000000000\n");
}

TEST(Subprocess, ASignalIsAnExitCode) { EXPECT_EQ(run_process({"sh", "-c", "kill -9 $$"}).exit_code, 128 + 9); }

TEST(Subprocess, AnExitCodeThatTheSystemDoesNotKeepIsNotSuccess) {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  EXPECT_EQ(tests::error_of([] { run_process({"false"}); }), "false: its exit code is not known: No child processes");
  std::signal(SIGCHLD, before);
}

TEST(Subprocess, AProgramThatIsNotThereIsNamed) {
  EXPECT_EQ(tests::error_of([] { run_process({"mylos-no-such-program"}); }),
            "mylos-no-such-program cannot be run: No such file or directory");
  EXPECT_THROW(run_process({}), std::invalid_argument);
}

TEST(Subprocess, LastLineSkipsBlanksAndProgress) {
  EXPECT_EQ(last_line(""), "");
  EXPECT_EQ(last_line(" \n\n"), "");
  EXPECT_EQ(last_line("one"), "one");
  EXPECT_EQ(last_line("one\ntwo\n \n"), "two");
  EXPECT_EQ(last_line("10%\r100%\rfailed\n"), "failed");
}

}  // namespace
}  // namespace mylos
