#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/support/sanitized.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>

/// Runs whose logs cannot be written, temporarily or at all: training continues.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

class Logs : public TinyRun {
 protected:
  void SetUp() override {
    if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer wants to be loaded first";
    TinyRun::SetUp();
  }

  Words words(const char* steps) const {
    Words all = {"train", "--model", model_, "--train", train_, "--output", run_, "--gemm", default_provider()};
    const Words more = {"--max-length",       "60", "--steps", steps, "--doc-stride", "20", "--batch", "4",
                        "--checkpoint-every", "3"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// Returns the steps in metrics.jsonl, in which every line is complete.
  std::vector<std::size_t> steps() const {
    std::vector<std::size_t> steps;
    for (const json& row : metrics_of(run_, "tokens")) steps.push_back(row["step"]);
    return steps;
  }

  /// Returns rules for a disk that is full from the 4th write of files with `name` in their path to the `last` one. The
  /// 4th write stores half of its data, and the first truncation of a partial line fails as well.
  static std::string full_disk(const std::string& name, const std::string& last) {
    return fmt::format("write#4:short:{0} write#5-{1}:{2}:{0} truncate#1:{3}:{0}", name, last, ENOSPC, EIO);
  }
};

// A single line that could not be written ended training before the checkpoint.
TEST_F(Logs, AreWrittenLaterWhereADiskIsFullForAWhile) {
  for (const char* name : {"metrics.jsonl", "events.out.tfevents"}) {
    const FileFaults full(full_disk(name, "5"));
    const ProgramRun run = run_mylos(words("9"));
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.errors, ContainsRegex(std::string("cannot write .*") + name +
                                          ".*: No space left on device; the run continues, keeps its records"));
    EXPECT_THAT(run.errors, HasSubstr("is written again"));
    EXPECT_EQ(steps(), (std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
    fs::remove_all(run_);
  }
}

TEST_F(Logs, ThatStayUnwrittenEndTheRunWithAnErrorWhenItIsComplete) {
  const FileFaults full(full_disk("metrics.jsonl", ""));
  const ProgramRun run = run_mylos(words("9"));
  EXPECT_EQ(run.exit_code, 1) << run.errors;
  EXPECT_THAT(run.error_lines().back(),
              AllOf(HasSubstr("mylos: error: cannot write "),
                    ContainsRegex("metrics.jsonl: No space left on device; [0-9]+ records are missing there; the model "
                                  "itself is written")));
  EXPECT_EQ(std::ranges::count_if(run.error_lines(),
                                  [](const std::string& line) { return line.find("the run continues") != line.npos; }),
            1);
  EXPECT_TRUE(fs::exists(run_ / "last" / "model.safetensors"));
  EXPECT_EQ(parallel::resolve_checkpoint(run_).filename(), "step-000009.h5");
  EXPECT_EQ(json::parse(read_file(run_ / "run.json"))["state"]["finished"], true) << "but for its log";
}

TEST_F(Logs, ThatStayUnwrittenDoNotChangeTheExitCodeOfAStop) {
  const FileFaults full(full_disk("metrics.jsonl", ""));
  RunningProgram running(words("1000000"));
  await_metrics(run_);
  running.send(SIGUSR1);
  const ProgramRun run = running.wait();
  EXPECT_EQ(run.exit_code, 85) << run.errors;
  EXPECT_FALSE(parallel::resolve_checkpoint(run_).empty());
}

// The file system has no locks, `latest` cannot be written, and old checkpoints cannot be removed.
TEST_F(Logs, WarnOfAFileSystemThatFailsOnlyBesideACompleteCheckpoint) {
  const FileFaults failing(fmt::format("flock:{}: rename:{}:/latest remove:{}:/step-000001.h5", ENOLCK, EIO, EACCES));
  Words all = joined(words("3"), {"--checkpoint-every", "1", "--keep", "1"});
  const ProgramRun run = run_mylos(all);
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, ContainsRegex("warning: --output .*: the file system has no locks \\(No locks available\\): "
                                        "do not let another run write there"));
  EXPECT_THAT(run.errors, ContainsRegex("step 2: warning: the checkpoint is complete, but cannot write .*latest: "
                                        "Input/output error; cannot remove .*step-000001.h5: Permission denied"));
  EXPECT_EQ(json::parse(read_file(run_ / "run.json"))["resolved"]["writers"], 1);
  EXPECT_FALSE(fs::exists(run_ / "checkpoints" / "latest"));
  EXPECT_EQ(parallel::resolve_checkpoint(run_).filename(), "step-000003.h5");
}

}  // namespace
}  // namespace mylos::tests
