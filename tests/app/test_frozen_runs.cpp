#include "tests/app/rank_runs.hpp"
#include "tests/app/resumed_runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

/// Checkpoints of runs that train the head alone: the values of the body stand in one file.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const Words head_only = {"--freeze", "body"};

/// Returns the only file of frozen tensors of a run.
fs::path frozen_of(const fs::path& run) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    if (entry.path().filename().string().starts_with("frozen-")) found.push_back(entry.path());
  }
  EXPECT_EQ(found.size(), 1u);
  return found.empty() ? fs::path() : found.front();
}

using FrozenRuns = ResumedRuns;

TEST_F(FrozenRuns, KeepTheBodyOnceAndGoOnToTheSameBits) {
  const fs::path whole = directory_ / "whole", exported = directory_ / "exported";
  ASSERT_EQ(train(whole, saving(head_only)).exit_code, 0);
  EXPECT_EQ(frozen_of(whole).filename(), "frozen-000002.h5");
  EXPECT_LT(fs::file_size(whole / "checkpoints" / "step-000008.h5"), fs::file_size(frozen_of(whole)) / 2);
  fs::copy(whole, run_, fs::copy_options::recursive);
  interrupt(run_, 4);
  const ProgramRun run = train(run_, saving(head_only));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("goes on after step 4, from "));
  EXPECT_EQ(metrics(run_), metrics(whole));
  EXPECT_EQ(frozen_of(run_).filename(), "frozen-000002.h5");
  const ProgramRun verified = run_mylos({"checkpoint", "verify", run_});
  EXPECT_EQ(verified.exit_code, 0) << verified.errors;
  const ProgramRun same = run_mylos({"checkpoint", "diff", run_, whole});
  EXPECT_EQ(same.exit_code, 0) << same.output;
  ASSERT_EQ(run_mylos({"checkpoint", "export", run_, "--output", exported}).exit_code, 0);
  for (const fs::path& other : {whole / "last", run_ / "last"}) {
    EXPECT_TRUE(read_file(exported / "model.safetensors") == read_file(other / "model.safetensors")) << other;
  }
  // A run that starts from the checkpoint of another has a file of its own.
  const fs::path next = directory_ / "next";
  Words from = saving(head_only);
  from.insert(from.end(), {"--resume", whole / "checkpoints" / "step-000004.h5"});
  ASSERT_EQ(train(next, from).exit_code, 0);
  EXPECT_EQ(frozen_of(next).filename(), "frozen-000006.h5");
  EXPECT_EQ(run_mylos({"checkpoint", "diff", next, whole}).exit_code, 0);
}

using FrozenRanks = RankRuns;

TEST_F(FrozenRanks, WithoutTheirFileEndWithOneLineOnAnyNumber) {
  const Words all = {"--freeze", "body", "--checkpoint-every", "2"};
  const ProgramRun sharded = run_on(2, train_words(run_, joined(all, {"--steps", "4", "--mode", "sharded"})));
  ASSERT_EQ(sharded.exit_code, 0) << sharded.errors;
  const fs::path frozen = frozen_of(run_);
  fs::rename(frozen, directory_ / "kept");
  const Words more = train_words(run_, joined(all, {"--steps", "6", "--extend"}));
  for (const std::size_t ranks : {1, 2}) {
    const ProgramRun run = run_on(ranks, more);
    EXPECT_EQ(run.exit_code, 1) << run.errors;
    Words lines = run.error_lines();
    std::erase_if(lines, [](const std::string& line) { return !line.starts_with("mylos: error: "); });
    ASSERT_EQ(lines.size(), 1u) << run.errors;
    EXPECT_THAT(lines[0],
                AllOf(HasSubstr("step-000004.h5: the file of its frozen tensors: cannot read " + frozen.string() +
                                ": No such file or directory; restore frozen-000002.h5 from a copy"),
                      EndsWith("no earlier checkpoint is intact")));
  }
  fs::rename(directory_ / "kept", frozen);
  const ProgramRun run = run_on(2, more);
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(frozen_of(run_), frozen);
}

}  // namespace
}  // namespace mylos::tests
