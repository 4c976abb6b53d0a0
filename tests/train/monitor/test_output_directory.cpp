#include "tests/support/file_size_limit.hpp"
#include "tests/support/temporary.hpp"
#include "train/monitor/output_directory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace mylos::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using OrderedJson = nlohmann::ordered_json;

const OutputRules plain = {};
const OutputRules overwrite = {.overwrite = true};

class OutputDirectoryTest : public testing::Test {
 protected:
  /// Performs a run that is finished or not, and leaves one of each file.
  void run(bool finished, const OutputRules& rules = plain) {
    OutputDirectory output(path_, rules);
    output.begin({{"epochs", 2}});
    for (const char* name : {"metrics.jsonl", "results.json", "best/model.safetensors", "last/model.safetensors",
                             "gpus/n1.jsonl", "events.out.tfevents.1.host.2", "predictions.json.partial-0badcafe"}) {
      tests::write_file(path_ / name, "{\"f1\": 50}\n");
    }
    if (finished) output.finish();
    if (!finished) std::filesystem::remove_all(path_ / "last");
  }

  /// Returns the error of opening the directory, without "`output <path>`: ".
  std::string refusal(const OutputRules& rules = plain) {
    const std::string message = tests::error_of([&] { OutputDirectory output(path_, rules); });
    const std::string start = "`output " + path_.string() + "`: ";
    return message.starts_with(start) ? message.substr(start.size()) : message;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  OrderedJson run_json() const { return OrderedJson::parse(tests::read_file(path_ / "run.json")); }

  tests::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "runs/first";
};

TEST_F(OutputDirectoryTest, MakesItWithItsParentsAndRecordsTheRun) {
  OutputDirectory output(path_, plain);
  EXPECT_FALSE(output.finished());
  output.begin({{"epochs", 2}});
  EXPECT_EQ(run_json().dump(), R"({"epochs":2,"state":{"finished":false,"slurm_job":null}})");
  output.finish();
  EXPECT_EQ(run_json().dump(), R"({"epochs":2,"state":{"finished":true,"slurm_job":null}})");
  EXPECT_THAT(names(), ElementsAre(".lock", "run.json"));
}

TEST_F(OutputDirectoryTest, TakesAnEmptyOne) {
  std::filesystem::create_directories(path_);
  EXPECT_FALSE(OutputDirectory(path_, plain).finished());
}

TEST_F(OutputDirectoryTest, TakesOneThatWasLeftBeforeTheRunBegan) {
  { OutputDirectory output(path_, plain); }
  tests::write_file(path_ / "run.json.partial-0badcafe", "{");
  tests::write_file(path_ / ".probe", "");
  OutputDirectory output(path_, plain);
  output.begin(OrderedJson::object());
  EXPECT_THAT(names(), ElementsAre(".lock", "run.json"));
}

TEST_F(OutputDirectoryTest, LeavesAFinishedRunAloneAndGivesItsResults) {
  run(true);
  const auto before = names();
  OutputDirectory output(path_, plain);
  EXPECT_TRUE(output.finished());
  EXPECT_EQ(output.results(), "{\"f1\": 50}\n");
  EXPECT_EQ(names(), before);
  EXPECT_THAT(tests::error_of([&] { output.begin(OrderedJson::object()); }), HasSubstr("a finished run is there"));
}

TEST_F(OutputDirectoryTest, GivesNoResultsWhereThereWasNoEvaluation) {
  run(true);
  std::filesystem::remove(path_ / "results.json");
  EXPECT_EQ(OutputDirectory(path_, plain).results(), std::nullopt);
}

TEST_F(OutputDirectoryTest, ShowsAFinishedRunWithForeignFiles) {
  run(true);
  tests::write_file(path_ / "notes.txt", "mine");
  EXPECT_TRUE(OutputDirectory(path_, plain).finished());
}

TEST_F(OutputDirectoryTest, BeginsAnUnfinishedRunAnewThatHasNoCheckpoint) {
  run(false);
  OutputDirectory output(path_, plain);
  EXPECT_EQ(output.checkpoint(), "");
  EXPECT_EQ(output.start().remark,
            path_.string() + " contains this run, interrupted before its first checkpoint: it starts over");
  EXPECT_TRUE(std::filesystem::exists(path_ / "metrics.jsonl")) << "removed before the new run begins";
  output.begin({{"epochs", 2}});
  EXPECT_THAT(names(), ElementsAre(".lock", "run.json"));
}

TEST_F(OutputDirectoryTest, GoesOnWithAnUnfinishedRunThatHasACheckpoint) {
  run(false);
  const std::filesystem::path file = path_ / "checkpoints" / "step-000005.h5";
  tests::write_file(file, "a checkpoint");
  auto before = names();
  std::erase(before, "predictions.json.partial-0badcafe");  // left by a killed start
  for (const OutputRules& rules : {plain, OutputRules{.overwrite = true, .requeued = true}}) {
    OutputDirectory output(path_, rules);
    EXPECT_FALSE(output.finished());
    EXPECT_EQ(output.checkpoint(), file);
    output.begin({{"epochs", 2}});
    EXPECT_EQ(names(), before);
  }
  EXPECT_EQ(refusal({.resume = false}),
            "contains an unfinished run; `resume auto` continues it, `overwrite` starts over");
  OutputDirectory anew(path_, overwrite);
  EXPECT_EQ(anew.checkpoint(), "");
  anew.begin({{"epochs", 2}});
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(OutputDirectoryTest, BeginsFromACheckpointElsewhereAndGoesOnWithItsOwn) {
  const std::filesystem::path file = directory_ / "other" / "checkpoints" / "step-000005.h5";
  const std::filesystem::path own = path_ / "checkpoints" / "step-000002.h5";
  tests::write_file(file, "a checkpoint");
  const OutputRules elsewhere = {.resume_from = directory_ / "other"};
  {
    OutputDirectory output(path_, elsewhere);
    EXPECT_EQ(output.checkpoint(), file);
    output.begin({{"epochs", 2}});
    tests::write_file(own, "a checkpoint");
  }
  OutputDirectory again(path_, elsewhere);
  EXPECT_EQ(again.checkpoint(), own);
  again.begin({{"epochs", 2}});
  EXPECT_TRUE(std::filesystem::exists(own));
}

TEST_F(OutputDirectoryTest, OverwritesRunsWhenTold) {
  for (const bool finished : {false, true}) {
    run(finished, overwrite);
    OutputDirectory output(path_, overwrite);
    EXPECT_FALSE(output.finished());
    EXPECT_TRUE(std::filesystem::exists(path_ / "best")) << "removed before the new run begins";
    output.begin({{"epochs", 3}});
    EXPECT_THAT(names(), ElementsAre(".lock", "run.json"));
    EXPECT_EQ(run_json().at("epochs"), 3);
  }
}

// Leftovers of the old run must not be mistaken for the new one's, whatever the options of the next start.
TEST_F(OutputDirectoryTest, ClearsOnAfterAKillThatInterruptedIt) {
  for (const OutputRules& rules :
       {plain, overwrite, OutputRules{.resume = false}, OutputRules{.requeued = true, .job = "7"}}) {
    run(false, overwrite);
    tests::write_file(path_ / "checkpoints" / "step-000005.h5", "a checkpoint");
    tests::write_file(path_ / "run.json", R"({"state": {"finished": false, "slurm_job": "7", "clearing": true}})");
    {
      OutputDirectory output(path_, rules);
      EXPECT_FALSE(output.finished());
      EXPECT_EQ(output.checkpoint(), "");
      output.begin({{"epochs", 3}});
    }
    EXPECT_THAT(names(), ElementsAre(".lock", "run.json"));
    EXPECT_EQ(run_json().dump(), rules.job.empty() ? R"({"epochs":3,"state":{"finished":false,"slurm_job":null}})"
                                                   : R"({"epochs":3,"state":{"finished":false,"slurm_job":"7"}})");
    std::filesystem::remove_all(path_);
  }
}

TEST_F(OutputDirectoryTest, SaysThatItClearsBeforeAnythingGoes) {
  run(true);
  tests::write_file(path_ / "checkpoints" / "step-000005.h5", "a checkpoint");
  std::filesystem::permissions(path_, std::filesystem::perms{0777});
  std::filesystem::permissions(path_ / "best", std::filesystem::perms{0555});  // its contents cannot be removed
  std::filesystem::permissions(directory_.path(), std::filesystem::perms{0755});
  std::filesystem::permissions(path_ / ".lock", std::filesystem::perms{0666});
  {
    OutputDirectory output(path_, overwrite);
    const bool root = ::geteuid() == 0;
    ASSERT_EQ(::seteuid(root ? 65534 : ::geteuid()), 0);
    EXPECT_THAT(tests::error_of([&] {
                  output.begin({{"epochs", 3}});
                }),
                HasSubstr("cannot remove best: Permission denied"));
    ASSERT_EQ(::seteuid(root ? 0 : ::geteuid()), 0);
  }
  std::filesystem::permissions(path_ / "best", std::filesystem::perms{0755});
  EXPECT_TRUE(std::filesystem::exists(path_ / "checkpoints" / "step-000005.h5"));
  EXPECT_EQ(run_json()["state"]["clearing"], true);
  EXPECT_EQ(OutputDirectory(path_, plain).checkpoint(), "") << "the old run's";
  EXPECT_EQ(refusal({.resume_from = path_ / "checkpoints" / "step-000005.h5"}),
            "contains the checkpoint to resume from, which would be removed; choose another");
}

TEST_F(OutputDirectoryTest, RefusesForeignFilesByNameAndKeepsThem) {
  tests::write_file(path_ / "thesis.tex", "x");
  tests::write_file(path_ / "zebra", "x");
  for (const OutputRules& rules : {plain, overwrite}) {
    EXPECT_EQ(refusal(rules), "contains thesis.tex, which no training run wrote; choose an empty or a new directory");
  }
  EXPECT_THAT(names(), ElementsAre("thesis.tex", "zebra"));
}

TEST_F(OutputDirectoryTest, RefusesForeignFilesBesideARun) {
  run(false);
  tests::write_file(path_ / "notes.txt", "mine");
  EXPECT_EQ(refusal(overwrite), "contains notes.txt, which no training run wrote; choose an empty or a new directory");
  EXPECT_TRUE(std::filesystem::exists(path_ / "metrics.jsonl"));
}

TEST_F(OutputDirectoryTest, RefusesAnotherProgramsRun) {
  for (const char* text : {"", "[1]", "{\"epochs\": 2}", "{\"state\": 1}", "{\"state\": {\"finished\": 1}}"}) {
    tests::write_file(path_ / "run.json", text);
    EXPECT_EQ(refusal(overwrite), "contains run.json, which no training run wrote; choose an empty or a new directory");
  }
}

TEST_F(OutputDirectoryTest, NamesWithControlCharactersStayOnOneLine) {
  tests::write_file(path_ / "a\nb", "x");
  EXPECT_THAT(refusal(), HasSubstr("contains a\\x0ab,"));
}

TEST_F(OutputDirectoryTest, RecordsTheJobOfPbs) {
  run(true, {.pbs_job = "17.server"});
  EXPECT_THAT(tests::read_file(path_ / "run.json"), HasSubstr("\"slurm_job\": null,\n    \"pbs_job\": \"17.server\""));
}

TEST_F(OutputDirectoryTest, RefusesOneThatALiveRunWritesInto) {
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t other = ::fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    OutputDirectory output(path_, plain);
    output.begin(OrderedJson::object());
    char byte = 'x';
    const bool reported = ::write(ready[1], &byte, 1) == 1 && ::read(done[0], &byte, 1) == 1;
    ::_exit(reported ? 0 : 1);
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  for (const OutputRules& rules : {plain, overwrite}) {
    EXPECT_THAT(refusal(rules), MatchesRegex("a run is writing there \\(process " + std::to_string(other) +
                                             " on .+\\); let it end, stop it, or choose another directory"));
  }
  EXPECT_EQ(::write(done[1], &byte, 1), 1);
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(OutputDirectory(path_, plain).finished());
}

TEST_F(OutputDirectoryTest, WaitsForAPredecessorThatIsDying) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t other = ::fork();
  ASSERT_GE(other, 0);
  if (other == 0) {
    const OutputDirectory output(path_, plain);
    const char byte = 'x';
    const bool reported = ::write(ready[1], &byte, 1) == 1;
    ::usleep(200'000);
    ::_exit(reported ? 0 : 1);
  }
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_FALSE(OutputDirectory(path_, plain).finished());
  int status = 0;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
}

// Information read before taking the lock is outdated: a run that has finished is neither resumed nor cleared.
TEST_F(OutputDirectoryTest, LeavesARunAloneThatFinishesWhileItWaits) {
  for (const OutputRules& rules : {plain, OutputRules{.overwrite = true, .requeued = true, .job = "7"}}) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t other = ::fork();
    ASSERT_GE(other, 0);
    if (other == 0) {
      OutputDirectory output(path_, {.overwrite = true, .job = "7"});
      output.begin({{"epochs", 2}});
      tests::write_file(path_ / "checkpoints" / "step-000005.h5", "a checkpoint");
      const char byte = 'x';
      const bool reported = ::write(ready[1], &byte, 1) == 1;
      ::usleep(200'000);
      output.finish();
      ::_exit(reported ? 0 : 1);
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    EXPECT_TRUE(OutputDirectory(path_, rules).finished());
    EXPECT_EQ(run_json()["state"]["finished"], true);
    int status = 0;
    ::waitpid(other, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_NO_THROW(OutputDirectory(path_, overwrite)) << "the lock is free again";
  }
}

TEST_F(OutputDirectoryTest, RefusesAFile) {
  tests::write_file(path_, "x");
  EXPECT_EQ(refusal(), "is a file; choose a directory");
}

TEST_F(OutputDirectoryTest, RefusesWhatCannotBeMade) {
  path_ = "/proc/mylos/run";
  EXPECT_EQ(refusal(), "cannot be created: No such file or directory");
}

TEST_F(OutputDirectoryTest, RefusesWhatCannotBeWritten) {
  std::filesystem::create_directories(path_);
  std::filesystem::permissions(directory_.path(), std::filesystem::perms{0755});
  std::filesystem::permissions(path_, std::filesystem::perms{0555});
  // Root can write everywhere, so the test drops root's rights for this.
  const bool root = ::geteuid() == 0;
  ASSERT_EQ(::seteuid(root ? 65534 : ::geteuid()), 0);
  EXPECT_EQ(refusal(), "cannot write there: Permission denied");
  ASSERT_EQ(::seteuid(root ? 0 : ::geteuid()), 0);
}

TEST_F(OutputDirectoryTest, FindsAFullDiskBeforeTheFirstStep) {
  const OutputDirectory output(path_, plain);
  EXPECT_NO_THROW(output.check_space(1 << 20));
  EXPECT_THAT(tests::error_of([&] { output.check_space(std::size_t{1} << 62); }),
              MatchesRegex("`output .*`: 4.00 EiB are needed, but .* are free there; make room or choose another "
                           "directory"));
  EXPECT_THAT(names(), ElementsAre(".lock"));
}

TEST_F(OutputDirectoryTest, FindsAQuotaBeforeTheFirstStep) {
  const OutputDirectory output(path_, plain);
  const tests::FileSizeLimit limit(1 << 20);
  EXPECT_THAT(
      tests::error_of([&] { output.check_space(1 << 21); }),
      MatchesRegex("`output .*`: 2.00 MiB are needed, but cannot be allocated there: cannot write .*/.probe: File too "
                   "large"));
  EXPECT_THAT(names(), ElementsAre(".lock"));
}

TEST_F(OutputDirectoryTest, TheProbeDoesNotFollowALink) {
  const std::filesystem::path others = directory_ / "others";
  tests::write_file(others, "somebody's");
  const OutputDirectory output(path_, plain);
  std::filesystem::create_symlink(others, path_ / ".probe");
  EXPECT_NO_THROW(output.check_space(1 << 20));
  EXPECT_EQ(tests::read_file(others), "somebody's");
  EXPECT_THAT(names(), ElementsAre(".lock"));
}

TEST_F(OutputDirectoryTest, NamesTheFileWhereRunJsonDoesNotFit) {
  OutputDirectory output(path_, plain);
  const tests::FileSizeLimit limit(1);
  EXPECT_EQ(tests::error_of([&] {
              output.begin({{"epochs", 2}});
            }),
            "cannot write " + (path_ / "run.json").string() + ": File too large");
}

TEST_F(OutputDirectoryTest, FinishNeedsARunThatBegan) {
  OutputDirectory output(path_, plain);
  EXPECT_THAT(tests::error_of([&] { output.finish(); }), HasSubstr("did not begin"));
  EXPECT_THAT(tests::error_of([&] { output.begin(OrderedJson::array()); }), HasSubstr("not a JSON object"));
}

}  // namespace
}  // namespace mylos::train
