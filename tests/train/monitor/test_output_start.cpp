#include "train/monitor/output_start.hpp"

#include "core/base/value_bytes.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

namespace mylos::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OutputStartTest : public testing::Test {
 protected:
  /// Leaves a directory with the run.json of `job`, a file of the run, and checkpoints of steps 1 to `checkpoints`.
  void leave_run(bool finished, std::size_t checkpoints, const std::string& job = R"("slurm_job": "7")") const {
    fs::remove_all(path_);
    tests::write_file(path_ / "run.json",
                      std::string(R"({"state": {"finished": )") + (finished ? "true, " : "false, ") + job + "}}");
    tests::write_file(path_ / "metrics.jsonl", "");
    for (std::size_t step = 1; step <= checkpoints; ++step) tests::write_file(own(step), "a checkpoint");
  }
  fs::path own(std::size_t step) const { return path_ / "checkpoints" / ("step-00000" + std::to_string(step) + ".h5"); }

  std::string refusal(const OutputRules& rules) const {
    return tests::error_of([&] { decide_start(path_, rules); });
  }

  /// Returns the outcome in one word, as in docs/checkpoints.md.
  std::string outcome(const OutputRules& rules) const {
    try {
      const OutputStart start = decide_start(path_, rules);
      if (start.finished) return "results";
      if (start.goes_on) return start.checkpoint == own(2) ? "newest" : "own";
      return start.checkpoint.empty() ? "step 1" : start.checkpoint == other_ ? "PATH" : start.checkpoint.string();
    } catch (const std::runtime_error&) {
      return "refused";
    }
  }

  void SetUp() override { tests::write_file(other_, "a checkpoint"); }

  tests::TemporaryDirectory directory_;
  fs::path path_ = directory_ / "run", other_ = directory_ / "other" / "checkpoints" / "step-000009.h5";
};

// The table of docs/checkpoints.md, "When it resumes".
TEST_F(OutputStartTest, FollowsTheTable) {
  enum class Holds { checkpoints, none, finished };
  struct Row {
    Holds holds;
    bool requeued, overwrite;
    std::string automatic, path, never;
  };
  const std::vector<Row> table = {
      {Holds::checkpoints, false, false, "newest", "newest", "refused"},
      {Holds::checkpoints, false, true, "step 1", "PATH", "step 1"},
      {Holds::checkpoints, true, false, "newest", "newest", "newest"},
      {Holds::checkpoints, true, true, "newest", "newest", "newest"},
      {Holds::none, false, false, "step 1", "PATH", "step 1"},
      {Holds::none, false, true, "step 1", "PATH", "step 1"},
      {Holds::none, true, false, "step 1", "PATH", "step 1"},
      {Holds::none, true, true, "step 1", "PATH", "step 1"},
      {Holds::finished, false, false, "results", "results", "results"},
      {Holds::finished, false, true, "step 1", "PATH", "step 1"},
      {Holds::finished, true, false, "results", "results", "results"},
      {Holds::finished, true, true, "results", "results", "results"},
  };
  const auto expect_row = [&](const Row& row, const OutputRules& rules, const std::string& which) {
    leave_run(row.holds == Holds::finished, row.holds == Holds::none ? 0 : 2);
    OutputRules path = rules, never = rules;
    path.resume_from = other_;
    never.resume = false;
    EXPECT_EQ(outcome(rules), row.automatic) << which;
    EXPECT_EQ(outcome(path), row.path) << which;
    EXPECT_EQ(outcome(never), row.never) << which;
  };
  for (const Row& row : table) {
    const std::string which = "row " + std::to_string(&row - table.data());
    expect_row(row, {.overwrite = row.overwrite, .requeued = row.requeued, .job = "7"}, which);
    // The column "of another job": as by hand, which the rows before those of requeued jobs describe.
    const OutputRules another = {.overwrite = row.overwrite, .requeued = row.requeued, .job = "8"};
    expect_row(row.requeued ? *(&row - 2) : row, another, which + ", of another job");
  }
}

// An interactive job has the same id in all its commands. Only one that PBS has started again keeps to its run.
TEST_F(OutputStartTest, AsksQstatWhetherPbsStartedTheJobAgain) {
  const OutputRules rules = {.overwrite = true, .pbs_job = "17.server"};
  const std::string ours = R"("slurm_job": null, "pbs_job": "17.server")", line = "`overwrite` is not used";
  const auto starts = [](const std::string& count) {
    return "test \"$*\" = '-f 17.server' || exit 2\necho 'Job Id: 17.server\n    run_count = " + count + "'";
  };
  const auto expect = [&](const std::string& expected, const std::string& job, const std::string& remark) {
    leave_run(false, 2, job);
    EXPECT_EQ(outcome(rules), expected == "own" ? "newest" : "step 1");
    EXPECT_THAT(decide_start(path_, rules).remark, HasSubstr(expected == "own" ? remark + line : ""));
    leave_run(true, 2, job);
    EXPECT_EQ(outcome(rules), expected == "own" ? "results" : "step 1");
    EXPECT_THAT(decide_start(path_, rules).remark, HasSubstr(expected == "own" ? remark + line : ""));
  };
  {
    const tests::StandInProgram qstat("qstat", starts("2"));
    expect("own", ours, "this job was started again and keeps to its own run: ");
    expect("anew", R"("slurm_job": null, "pbs_job": "16.server")", "");
    expect("anew", R"("slurm_job": "17.server")", "");
  }
  {
    const tests::StandInProgram qstat("qstat", starts("1"));
    expect("anew", ours, "");
  }
  const std::string unknown = "qstat does not say whether PBS has started the job again: ";
  for (const std::string& commands : {std::string("exit 1"), std::string("echo 'Job Id: 17.server'")}) {
    const tests::StandInProgram qstat("qstat", commands);
    expect("own", ours, unknown);
  }
  const tests::EnvironmentVariable without("PATH", directory_.path().string());
  expect("own", ours, unknown);
}

// Nothing is lost: an interactive job may have begun another run here that has no checkpoint yet.
TEST_F(OutputStartTest, RefusesAnotherCommandIfQstatDoesNotAnswer) {
  const tests::StandInProgram qstat("qstat", "exit 1");
  leave_run(false, 0, R"("pbs_job": "17.server")");
  EXPECT_THAT(refusal({.pbs_job = "17.server",
                       .compare = [](const auto&) { return CommandDifference{.options = {"seed 42, now 7"}}; }}),
              HasSubstr("no checkpoint to resume from: seed 42, now 7"));
}

TEST_F(OutputStartTest, ObeysACheckpointOfItsOwnWhereItWasStartedByHand) {
  leave_run(false, 2);
  EXPECT_EQ(decide_start(path_, {.resume_from = own(1)}).checkpoint, own(1));
  EXPECT_EQ(decide_start(path_, {.requeued = true, .job = "7", .resume_from = own(1)}).checkpoint, own(2));
  EXPECT_EQ(decide_start(path_, {.requeued = true, .job = "8", .resume_from = own(1)}).checkpoint, own(1));
  for (const fs::path& name : {path_, path_ / "", path_ / "checkpoints", path_ / "checkpoints" / ""}) {
    const OutputStart start = decide_start(path_, {.resume_from = name});
    EXPECT_TRUE(start.goes_on) << name;
    EXPECT_EQ(start.checkpoint.filename(), own(2).filename()) << name;
    EXPECT_EQ(start.remark, "");
  }
  EXPECT_THAT(refusal({.resume_from = own(3)}), HasSubstr("step-000003.h5`: contains no checkpoint"));
}

TEST_F(OutputStartTest, SaysWhatARequeuedJobDoesNotFollow) {
  leave_run(false, 2);
  const OutputRules all = {.overwrite = true, .requeued = true, .job = "7", .resume = false};
  EXPECT_EQ(decide_start(path_, all).remark,
            "this job was started again and keeps to its own run: `overwrite` and `resume never` are not used");
  EXPECT_EQ(decide_start(path_, {.requeued = true, .job = "7"}).remark, "");
  leave_run(true, 2);
  EXPECT_EQ(decide_start(path_, {.overwrite = true, .requeued = true, .job = "7"}).remark,
            "this job was started again and keeps to its own run: `overwrite` is not used");
}

TEST_F(OutputStartTest, NeedsNoOtherRunWhereItHasCheckpointsOfItsOwn) {
  leave_run(false, 2);
  const fs::path gone = directory_ / "gone";
  const OutputStart start = decide_start(path_, {.resume_from = gone});
  EXPECT_EQ(start.checkpoint, own(2));
  EXPECT_EQ(start.remark, "this run has checkpoints of its own: `resume " + gone.string() + "` is not used");
  leave_run(false, 0);
  EXPECT_EQ(refusal({.resume_from = gone}), "`resume " + gone.string() + "`: contains no checkpoint");
}

TEST_F(OutputStartTest, RefusesToClearTheCheckpointThatIsNamed) {
  const auto expect_refused = [&] {
    EXPECT_THAT(refusal({.overwrite = true, .resume_from = own(1)}),
                HasSubstr("contains the checkpoint to resume from, which would be removed; choose another"));
  };
  for (const bool finished : {true, false}) {
    leave_run(finished, 2);
    expect_refused();
  }
  tests::write_file(path_ / "run.json", R"({"state": {"finished": false, "clearing": true}})");
  expect_refused();
}

TEST_F(OutputStartTest, KeepsAModelThatNoCheckpointStandsFor) {
  leave_run(false, 0);
  tests::write_file(path_ / "last" / "model.safetensors", "a model");
  for (const bool requeued : {false, true}) {
    EXPECT_THAT(refusal({.requeued = requeued, .job = "7"}),
                HasSubstr("with a model in last/, but no checkpoint to resume from"));
  }
  EXPECT_EQ(outcome({.overwrite = true}), "step 1");
}

TEST_F(OutputStartTest, BeginsAnewOnlyWhatIsTheSameCommand) {
  leave_run(false, 0);
  OutputRules rules = {.compare = [](const auto& saved) {
    EXPECT_TRUE(saved.contains("state"));
    return CommandDifference{.options = {"seed 42, now 7", "batch 4, now 8"}};
  }};
  EXPECT_EQ(refusal(rules), "`output " + path_.string() +
                                "`: contains an unfinished run with other options and no checkpoint to resume from: "
                                "seed 42, now 7; batch 4, now 8; `overwrite` starts over, or choose another "
                                "directory");
  rules.overwrite = true;
  EXPECT_EQ(outcome(rules), "step 1");
  for (const bool requeued : {false, true}) {
    rules = {.requeued = requeued, .job = "7", .compare = [](const auto&) { return CommandDifference(); }};
    EXPECT_EQ(decide_start(path_, rules).remark,
              path_.string() + " contains this run, interrupted before its first checkpoint: it starts over");
  }
}

TEST_F(OutputStartTest, RefusesARunFileThatIsAPipe) {
  fs::create_directories(path_);
  ASSERT_EQ(::mkfifo((path_ / "run.json").c_str(), 0600), 0);
  EXPECT_THAT(refusal({}),
              HasSubstr(path_.string() + "`: run.json in it is a directory, a pipe or a device instead of a file"));
}

TEST_F(OutputStartTest, GivesTheDifferencesFromAFinishedRun) {
  leave_run(true, 2);
  OutputRules rules = {.compare = [](const auto&) { return CommandDifference{.options = {"seed 42, now 7"}}; }};
  const OutputStart start = decide_start(path_, rules);
  EXPECT_TRUE(start.finished);
  EXPECT_THAT(start.differing, testing::ElementsAre("seed 42, now 7"));
  rules.overwrite = true;
  EXPECT_EQ(outcome(rules), "step 1");
}

TEST_F(OutputStartTest, ExtendsWhatHasACheckpoint) {
  OutputRules longer = {.extend = true, .compare = [](const auto&) { return CommandDifference{.extends = true}; }};
  OutputRules same = {.extend = true, .compare = [](const auto&) { return CommandDifference(); }};
  OutputRules other = {.extend = true, .compare = [](const auto&) {
                         return CommandDifference{.options = {"seed 42, now 7"}, .extends = true};
                       }};
  leave_run(true, 2);
  EXPECT_TRUE(finished_start(path_, same).has_value());
  EXPECT_FALSE(finished_start(path_, longer).has_value());
  EXPECT_EQ(outcome(longer), "newest");
  EXPECT_EQ(outcome(same), "results");
  EXPECT_THAT(decide_start(path_, other).differing, testing::ElementsAre("seed 42, now 7"));
  leave_run(false, 2);  // killed while it was extended
  EXPECT_EQ(outcome(longer), "newest");
  EXPECT_EQ(outcome(same), "newest");
  for (const bool finished : {true, false}) {
    leave_run(finished, 0);
    EXPECT_THAT(refusal(longer), HasSubstr("its run has no checkpoint, which `extend` needs"));
  }
  fs::remove_all(path_);
  EXPECT_THAT(refusal(longer), HasSubstr("contains no run, which `extend` needs; leave it out"));
}

TEST(OutputRules, KnowARequeuedJob) {
  const tests::EnvironmentVariable job("SLURM_JOB_ID", "7");
  {
    const tests::EnvironmentVariable count("SLURM_RESTART_COUNT", "1");
    EXPECT_TRUE(output_rules(false).requeued);
    EXPECT_EQ(output_rules(false).job, "7");
    EXPECT_TRUE(output_rules(true).overwrite);
  }
  const tests::EnvironmentVariable count("SLURM_RESTART_COUNT", "0");
  const tests::EnvironmentVariable pbs("PBS_JOBID", "17.server");
  EXPECT_FALSE(output_rules(false).requeued);
  EXPECT_FALSE(output_rules(false).overwrite);
  EXPECT_EQ(output_rules(false).pbs_job, "") << "Slurm's id counts if a plugin sets both";
  const tests::EnvironmentVariable none("SLURM_JOB_ID", "");
  EXPECT_EQ(output_rules(false).pbs_job, "17.server");
}

TEST(OutputStart, IsTheSameOnTheRankThatReceivesIt) {
  OutputStart start{.finished = true,
                    .differing = {"seed 42, now 7", ""},
                    .goes_on = true,
                    .checkpoint = "run/checkpoints/step-000002.h5",
                    .remark = "it starts over"};
  auto copy = value_of_bytes<OutputStart>(bytes_of_value(start));
  EXPECT_TRUE(members(copy) == members(start));
  OutputStart empty;
  copy = value_of_bytes<OutputStart>(bytes_of_value(empty));
  EXPECT_TRUE(members(copy) == members(empty));
}

// Users may name copies NAME.partial-old, and clearing a directory removes a run's files.
TEST(RunFileNames, ThoseThatWritersGiveAreARuns) {
  for (const char* ours :
       {"run.json", "run.json.partial-0badcafe", "best", "best.partial-0badcafe", "best.replaced-0badcafe",
        "metrics.jsonl", "events.out.tfevents.1.host.2", ".lock", ".probe"}) {
    EXPECT_TRUE(is_run_file(ours)) << ours;
  }
  for (const char* others : {"best.partial-old", "metrics.jsonl.partial-0badcafe.bak", "run.json.partial-0BADCAFE",
                             "thesis.partial-0badcafe", "thesis.tex"}) {
    EXPECT_FALSE(is_run_file(others)) << others;
    EXPECT_FALSE(is_scaffolding(others)) << others;
  }
  EXPECT_TRUE(is_scaffolding("run.json.partial-0badcafe"));
  EXPECT_FALSE(is_scaffolding("run.json"));
}

}  // namespace
}  // namespace mylos::train
