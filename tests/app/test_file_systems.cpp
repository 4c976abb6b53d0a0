#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/support/sanitized.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <map>

/// Runs on file systems that have no locks, cannot flush a directory, or lose the run's directory.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class FileSystems : public TinyRun {
 protected:
  void SetUp() override {
    if (heap_is_sanitized) GTEST_SKIP() << "the sanitizer wants to be loaded first";
    TinyRun::SetUp();
  }

  Words train_words(const fs::path& data, const Words& more) const {
    return joined({"train", "--model", model_, "--train", data, "--output", run_, "--max-length", "60", "--doc-stride",
                   "20", "--batch", "4", "--gemm", default_provider()},
                  more);
  }
  ProgramRun stop_after_a_step(const Words& words) const {
    const fs::path metrics = run_ / "metrics.jsonl";
    const std::uintmax_t before = fs::exists(metrics) ? fs::file_size(metrics) : 0;
    RunningProgram running(words);
    await_metrics(run_, before);
    running.send(SIGUSR1);
    return running.wait();
  }
  /// Returns names and contents of all files in the run's directory.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(run_)) {
      if (entry.is_regular_file()) files[entry.path()] = read_file(entry.path());
    }
    return files;
  }
};

std::size_t count_of(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
  return found;
}

// HDF5 ignores only ENOSYS, and only if HDF5_USE_FILE_LOCKING does not ask for locks.
TEST_F(FileSystems, WithoutLocksRunsSaveResumeAndVerify) {
  const EnvironmentVariable asks_for_locks("HDF5_USE_FILE_LOCKING", "TRUE");
  for (const int code : {EOPNOTSUPP, ENOSYS}) {
    SCOPED_TRACE(code);
    const FileFaults no_locks(fmt::format("flock:{}:", code));
    const fs::path prepared = directory_ / "prepared.h5";
    const ProgramRun preparation = run_mylos({"prepare", "--model", model_, "--data", train_, "--output", prepared,
                                              "--max-length", "60", "--doc-stride", "20"});
    ASSERT_EQ(preparation.exit_code, 0) << preparation.errors;
    const ProgramRun stopped =
        stop_after_a_step(train_words(prepared, {"--steps", "1000000", "--checkpoint-every", "1000000"}));
    EXPECT_EQ(stopped.exit_code, 85) << stopped.errors;
    EXPECT_EQ(count_of(stopped.errors, "the file system has no locks"), 1u) << stopped.errors;
    const std::size_t step = parallel::list_checkpoints(run_ / "checkpoints").back().step;
    const ProgramRun resumed =
        stop_after_a_step(train_words(prepared, {"--steps", "1000000", "--checkpoint-every", "1", "--keep", "1"}));
    EXPECT_EQ(resumed.exit_code, 85) << resumed.errors;
    EXPECT_THAT(resumed.errors, HasSubstr(fmt::format("goes on after step {}", step)));
    const auto kept = parallel::list_checkpoints(run_ / "checkpoints");
    ASSERT_EQ(kept.size(), 1u) << "older ones are removed";
    EXPECT_GT(kept.front().step, step);
    const ProgramRun verified = run_mylos({"checkpoint", "verify", run_});
    EXPECT_EQ(verified.exit_code, 0) << verified.errors;
    fs::remove_all(run_);
    fs::remove(prepared);
  }
}

TEST_F(FileSystems, ACheckpointWhoseNameMayNotBeOnDiskLeavesThePredecessor) {
  const FileFaults failing(fmt::format("fsync#3-:{}:/checkpoints$", EIO));
  const ProgramRun run = run_mylos(train_words(train_, {"--steps", "4", "--checkpoint-every", "1", "--keep", "1"}));
  EXPECT_EQ(run.exit_code, 1) << run.errors;
  EXPECT_THAT(run.error_lines().back(), ContainsRegex("cannot flush .*/checkpoints: Input/output error"));
  EXPECT_TRUE(fs::exists(run_ / "checkpoints" / "step-000001.h5"));
}

TEST_F(FileSystems, ARunWhoseDirectoryIsRemovedSavesBesideIt) {
  RunningProgram running(train_words(train_, {"--steps", "1000000", "--checkpoint-every", "1000000"}));
  await_metrics(run_);
  fs::remove_all(run_);
  const ProgramRun other = run_mylos(train_words(train_, {"--steps", "3", "--checkpoint-every", "1", "--keep", "9"}));
  EXPECT_EQ(other.exit_code, 0) << other.errors;
  const auto before = contents();
  running.send(SIGUSR1);
  const ProgramRun run = running.wait();
  EXPECT_EQ(run.exit_code, 1) << run.errors;
  EXPECT_THAT(run.error_lines().back(),
              ContainsRegex("--output .*run belongs to this run no longer: .*run/.lock belongs to process [0-9]+ on .* "
                            "now; the checkpoint after step [0-9]+ is .*run.lost-[0-9a-f]+/step-[0-9]+.h5; a new run "
                            "continues from it with --resume "));
  EXPECT_EQ(contents(), before) << "the other run's files";
  for (const auto& entry : fs::directory_iterator(directory_.path())) {
    if (!entry.path().filename().string().starts_with("run.lost-")) continue;
    const ProgramRun verified = run_mylos({"checkpoint", "verify", entry.path()});
    EXPECT_EQ(verified.exit_code, 0) << verified.errors;
  }
}

}  // namespace
}  // namespace mylos::tests
