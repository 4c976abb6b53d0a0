#include "tests/app/family.hpp"
#include "tests/app/rank_runs.hpp"
#include "tests/support/waiting.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <map>

/// mylos doctor as a program, in environments with problems.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

/// Runs the program on a directory of its own.
class DoctorProgram : public TinyRun {
 protected:
  using TinyRun::TinyRun;
  void SetUp() override {
    TinyRun::SetUp();
    fs::create_directories(run_);
  }
  Words words(const Words& more = {}) const { return joined({"doctor", "--output", run_}, more); }
};

using DoctorOfFamily = OnFamily<DoctorProgram>;

TEST_P(DoctorOfFamily, AloneFindsNoError) {
  const ProgramRun run = run_mylos(words({"--model", model_}));
  EXPECT_EQ(run.exit_code, 0) << run.output << run.errors;
  for (const char* name :
       {"program", "launch", "processors", "threads", "memory", "limits", "output", "cache", "model"}) {
    if (std::string(name) == "launch" && mpiexec().empty()) continue;
    EXPECT_THAT(run.output, HasSubstr(std::string(" ") + name + " "));
  }
  EXPECT_TRUE(fs::is_empty(run_));
  const ProgramRun as_json = run_mylos(words({"--json"}));
  const json report = json::parse(as_json.output);
  EXPECT_EQ(report["ranks"], 1);
  EXPECT_EQ(report["errors"], 0);
  EXPECT_EQ(report["findings"][0]["name"], "program");
}

MYLOS_FOR_EACH_FAMILY(DoctorOfFamily);

TEST_F(DoctorProgram, ErrorsExitWithOne) {
  const ProgramRun missing = run_mylos(words({"--model", "/no/model"}));
  EXPECT_EQ(missing.exit_code, 1) << missing.output;
  EXPECT_THAT(missing.output, HasSubstr("error    model       no directory /no/model"));
  const ProgramRun closed = run_mylos({"doctor", "--output", "/proc/self"});
  EXPECT_EQ(closed.exit_code, 1) << closed.output;
  EXPECT_THAT(closed.output, HasSubstr("error    output      cannot make a file there"));
  EXPECT_EQ(run_mylos({"doctor", "--batch", "4"}).exit_code, 2);
  const ProgramRun file = run_mylos({"doctor", "--output", train_});
  EXPECT_EQ(file.exit_code, 1) << "train refuses it, too";
  EXPECT_THAT(file.output, HasSubstr("error    output      " + train_.string() + " is not a directory"));
}

TEST_F(DoctorProgram, ADirectoryThatIsGoneIsAFinding) {
  const std::string script = "mkdir '" + (run_ / "gone").string() + "' && cd '" + (run_ / "gone").string() +
                             "' && rmdir '" + (run_ / "gone").string() + "' && exec \"$@\"";
  const ProgramRun run =
      RunningProgram({"-c", script, "sh", program(), "doctor", "--output", "somewhere"}, "", {}, "/bin/sh").wait();
  EXPECT_EQ(run.exit_code, 1) << run.output << run.errors;
  EXPECT_THAT(run.output, HasSubstr("error    output      the current directory does not exist: No such file"));
}

TEST_F(DoctorProgram, VariablesNeedNotBeText) {
  const EnvironmentVariable job("SLURM_JOB_ID", "7\xff");
  const ProgramRun run = run_mylos(words({"--json"}));
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(json::parse(run.output)["errors"], 0);
}

TEST_F(DoctorProgram, AFullFileSystemIsNamed) {
  const fs::path disk = directory_ / "disk";
  const auto run = run_on_small_disk(disk, 1024, R"("$@")", {"doctor", "--output", disk});
  if (!run) GTEST_SKIP() << "this user may not mount a file system";
  EXPECT_EQ(run->exit_code, 1) << run->output;
  EXPECT_THAT(run->output, HasSubstr("disk: tmpfs; files there are lost after the job"));
  EXPECT_THAT(run->output, HasSubstr("cannot write there: No space left on device"));
}

TEST_F(DoctorProgram, ProcessesThatTakeThemselvesForTheOnlyOneAreFound) {
  if (mpiexec().empty()) GTEST_SKIP() << "a build without MPI";
  const EnvironmentVariable job("SLURM_JOB_ID", "7"), tasks("SLURM_STEP_NUM_TASKS", "2");
  {
    const EnvironmentVariable first("SLURM_PROCID", "0");
    const ProgramRun run = run_mylos(words());
    EXPECT_EQ(run.exit_code, 1) << run.output;
    EXPECT_THAT(run.output, HasSubstr("SLURM_STEP_NUM_TASKS=2: they do not match; start it with srun --mpi="));
  }
  const EnvironmentVariable second("SLURM_PROCID", "1");
  const ProgramRun run = run_mylos(words());
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.output + run.errors, "") << "the first one speaks";
}

/// The disk on which it writes is slow.
class DoctorOnASlowDisk : public DoctorProgram {
 protected:
  bool has_file() const { return !fs::is_empty(run_); }
  void wait_for_file() const {
    wait_until([this] { return has_file(); });
  }
  static Words slowly(const std::string& rule, const Words& words) {
    return joined({"LD_PRELOAD=" + file_faults_library().string(), "MYLOS_FILE_FAULTS=" + rule, program()}, words);
  }
};

TEST_F(DoctorOnASlowDisk, AnInterruptLeavesNothing) {
  RunningProgram run(slowly("fsync:10s:mylos-doctor-trial", words()), "", {}, "/usr/bin/env");
  wait_for_file();
  EXPECT_TRUE(has_file());
  run.send(SIGINT);
  EXPECT_EQ(run.wait().exit_code, 130);
  EXPECT_FALSE(has_file());
}

TEST_F(DoctorOnASlowDisk, WhatDoesNotComeBackIsNamed) {
  const ProgramRun run = RunningProgram(slowly("fsync:10s:mylos-doctor-trial", words({"--collective-timeout", "2"})),
                                        "", {}, "/usr/bin/env")
                             .wait();
  EXPECT_EQ(run.exit_code, 1) << run.errors;
  EXPECT_THAT(run.output, HasSubstr("writing to " + run_.string() + " did not finish within 1 s"));
  EXPECT_FALSE(has_file());
}

TEST_F(DoctorOnASlowDisk, AMountWhoseServerIsGoneIsNamed) {
  const fs::path dead = directory_ / "deadmount" / "run";
  const Words words = slowly("stat:20s:deadmount", {"doctor", "--collective-timeout", "2", "--output", dead});
  const ProgramRun run = RunningProgram(words, "", {}, "/usr/bin/env").wait();
  EXPECT_EQ(run.exit_code, 1) << run.errors;
  EXPECT_THAT(run.output,
              HasSubstr("error    output      looking for " + dead.string() + " did not finish within 0.5 s"));
  EXPECT_THAT(run.output, HasSubstr("1 error,")) << "the rest is looked at";
}

class DoctorOnRanks : public RankRuns {
 protected:
  Words words(const Words& more = {}) const { return joined({"doctor", "--output", run_}, more); }
  void SetUp() override {
    RankRuns::SetUp();
    fs::create_directories(run_);
  }
};

TEST_F(DoctorOnRanks, OneRankSpeaks) {
  const ProgramRun run = run_on(2, words({"--json"}));
  EXPECT_EQ(run.exit_code, 0) << run.output << run.errors;
  const json report = json::parse(run.output);
  EXPECT_EQ(report["ranks"], 2);
  EXPECT_EQ(report["nodes"], 1);
  std::map<std::string, json> found;
  for (const json& each : report["findings"]) found[each["name"]] = each;
  EXPECT_EQ(found["shared"]["ranks"], json({0, 1}));
  EXPECT_EQ(found["shared"]["level"], "ok");
  EXPECT_TRUE(found.contains("clock"));
  EXPECT_EQ(found["threads"]["ranks"], json({0, 1}));
  EXPECT_TRUE(fs::is_empty(run_));
}

TEST_F(DoctorOnRanks, WhatOneRankHasIsToldWithIt) {
  const ProgramRun run = run_on({words({"--model", model_}), words({"--model", "/no/model"})});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("ok       model       rank 0: " + model_.string()));
  EXPECT_THAT(run.output, HasSubstr("error    model       rank 1: no directory /no/model"));
}

TEST_F(DoctorOnRanks, ThreadsBeyondTheProcessorsAreCounted) {
  const EnvironmentVariable many("OMP_NUM_THREADS", "512"), unbound("OMP_PROC_BIND", "false");
  const ProgramRun run = run_on(2, words());
  EXPECT_THAT(run.output, HasSubstr("1,024 threads of 2 ranks on "));
}

TEST_F(DoctorOnRanks, FoldersThatAreNotSharedAreFound) {
  Words two = {"-n", "1", program()};
  const Words mine = words({"--collective-timeout", "4"});
  two.insert(two.end(), mine.begin(), mine.end());
  const std::string script = "mount -t tmpfs none '" + run_.string() + "' || exit 77; exec \"$@\"";
  const Words apart = {":", "-n", "1", "/usr/bin/unshare", "--mount", "/bin/sh", "-c", script, "sh", program()};
  two.insert(two.end(), apart.begin(), apart.end());
  two.insert(two.end(), mine.begin(), mine.end());
  if (!run_on_small_disk(directory_ / "disk", 16, "true", {}) || ::geteuid() != 0) {
    GTEST_SKIP() << "this user may not mount a file system";
  }
  const ProgramRun run = RunningProgram(two, "", {}, mpiexec()).wait();
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("error    shared      rank 1: " + run_.string() + " does not show a file that "));
}

/// A rank is lost while the first rank writes.
class DoctorWithoutARank : public DoctorOnRanks {
 protected:
  ProgramRun lose_rank(int signal) {
    Words all = {"-n",
                 "1",
                 "/usr/bin/env",
                 "LD_PRELOAD=" + file_faults_library().string(),
                 "MYLOS_FILE_FAULTS=fsync:1s:mylos-doctor-shared",
                 program()};
    const Words mine = words({"--collective-timeout", "4"});
    all.insert(all.end(), mine.begin(), mine.end());
    all.insert(all.end(), {":", "-n", "1", program()});
    all.insert(all.end(), mine.begin(), mine.end());
    RunningProgram run(all, "", {}, mpiexec());
    wait_until([this] { return !fs::is_empty(run_); });
    const std::vector<int> ranks = processes_of(run_);
    EXPECT_EQ(ranks.size(), 2u);
    if (ranks.size() == 2) ::kill(ranks[1], signal);
    return run.wait();
  }
};

TEST_F(DoctorWithoutARank, OneThatHangsIsNamed) {
  const ProgramRun run = lose_rank(SIGSTOP);
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("error    launch      rank 1: did not answer in time")) << run.errors;
  EXPECT_TRUE(fs::is_empty(run_));
}

TEST_F(DoctorWithoutARank, WhereItIsTheFirstTheOthersSpeak) {
  Words all = {"-n", "1", "/bin/sleep", "60", ":", "-n", "1", program()};
  const Words mine = words({"--collective-timeout", "2"});
  all.insert(all.end(), mine.begin(), mine.end());
  const ProgramRun run = RunningProgram(all, "", {}, mpiexec()).wait();
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.errors, HasSubstr("mylos: error: rank 1 on "));
  EXPECT_THAT(run.errors, HasSubstr("did not finish within 2 s; "));
}

TEST_F(DoctorWithoutARank, OneThatDiesEndsAll) {
  EXPECT_NE(lose_rank(SIGKILL).exit_code, 0);
  EXPECT_TRUE(fs::is_empty(run_));
}

}  // namespace
}  // namespace mylos::tests
