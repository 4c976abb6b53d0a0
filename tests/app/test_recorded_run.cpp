#include "core/base/files/hdf5.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "tests/app/rank_runs.hpp"
#include "tests/data/images/recorded_images.hpp"
#include "tests/support/hdf5_changes.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary.hpp"
#include "train/monitor/run_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

/// Resumes from files that earlier versions wrote (lab/record/small_run.py, family_runs.py).
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr std::string_view recorded_at = "/tmp/recorded_run";  // the path that lab/record/small_run.py used

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

Words split_words(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

/// Returns a value of each step or evaluation.
std::map<std::size_t, double> values(const std::vector<nlohmann::json>& rows, const char* name) {
  std::map<std::size_t, double> found;
  for (const auto& row : rows) found[row.at("step").get<std::size_t>()] = row.at(name).get<double>();
  return found;
}

/// Copies the recorded files to this test's directory, and adapts the paths in run.json and the checkpoints.
class RecordedRun : public testing::Test {
 protected:
  void SetUp() override {
    fs::copy(source_dir() / "tests/golden/recorded_run", recorded_, fs::copy_options::recursive);
    for (const char* name : {"finished", "interrupted"}) {
      const fs::path run = recorded_ / name / "run.json";
      write_file(run, replaced(read_file(run), recorded_at, recorded_.string()));
      move_checkpoint(parallel::resolve_checkpoint(recorded_ / name));
    }
  }

  void move_checkpoint(const fs::path& path) const {
    change_hdf5(path, [&](hid_t file) {
      const Hdf5Id run(H5Gopen2(file, "/run", H5P_DEFAULT), H5Gclose);
      ASSERT_TRUE(run.is_valid());
      const std::string text = read_hdf5_text(run.get(), "configuration", path.string(), std::size_t{1} << 20);
      ASSERT_GE(H5Adelete(run.get(), "configuration"), 0);
      const std::string moved = replaced(text, recorded_at, recorded_.string());
      write_hdf5_attribute(run.get(), "configuration", std::string_view(moved), path.string());
    });
  }

  /// Runs the recorded command.
  ProgramRun train(const std::string& output, const std::string& more = "") const {
    const std::string questions = recorded_ / "questions.json";
    return run_mylos(
        joined({"train", "--model", recorded_ / "model", "--train", questions, "--dev", questions, "--output",
                recorded_ / output},
               split_words("--max-length 60 --doc-stride 20 --batch 4 --learning-rate 1e-3 --dropout 0.1 --steps 60 "
                           "--eval-every 15 --checkpoint-every 16 --keep 1 --n-best 3 " +
                           more)));
  }

  TemporaryDirectory directory_;
  fs::path recorded_ = directory_ / "recorded";
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (directory_ / "cache").string()};  ///< not the user's timing cache
};

/// Compares numbers by step or name, up to the effects of another CPU and GEMM provider.
template <class Key>
void expect_near(const std::map<Key, double>& actual, const std::map<Key, double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [key, value] : expected) EXPECT_NEAR(actual.at(key), value, 1e-4 * value) << key;
}

TEST_F(RecordedRun, MetricsAreRead) {
  const train::RunRecord finished = train::read_run(recorded_ / "finished");
  EXPECT_TRUE(finished.finished);
  EXPECT_EQ(finished.planned_steps(), 60u);
  EXPECT_EQ(finished.done_steps(), 60u);
  EXPECT_EQ(finished.steps.size(), 60u);
  EXPECT_EQ(finished.evaluations.size(), 4u);
  EXPECT_EQ(finished.checkpoints.size(), 3u);
  EXPECT_EQ(finished.unreadable, 0u);
  const train::RunRecord interrupted = train::read_run(recorded_ / "interrupted");
  EXPECT_FALSE(interrupted.finished);
  EXPECT_EQ(interrupted.ended, "ended by SIGUSR1");
  EXPECT_EQ(interrupted.done_steps(), 19u);
  EXPECT_EQ(interrupted.checkpoint, "step-000019.h5");
}

TEST_F(RecordedRun, TheFinishedOneIsFinished) {
  const std::string metrics = read_file(recorded_ / "finished/metrics.jsonl");
  const ProgramRun again = train("finished");
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(again.output, read_file(recorded_ / "finished/results.json"));
  EXPECT_THAT(again.errors, HasSubstr("finished contains this run, which has finished"));
  EXPECT_EQ(read_file(recorded_ / "finished/metrics.jsonl"), metrics);
}

TEST_F(RecordedRun, TheInterruptedOneGoesOnToTheSameEnd) {
  const ProgramRun rest = train("interrupted");
  ASSERT_EQ(rest.exit_code, 0) << rest.errors;
  EXPECT_THAT(rest.errors, HasSubstr("goes on after step 19, from " +
                                     (recorded_ / "interrupted/checkpoints/step-000019.h5").string()));
  const train::RunRecord actual = train::read_run(recorded_ / "interrupted");
  const train::RunRecord expected = train::read_run(recorded_ / "finished");
  EXPECT_TRUE(actual.finished);
  expect_near(values(actual.steps, "loss"), values(expected.steps, "loss"));
  expect_near(values(actual.steps, "learning_rate"), values(expected.steps, "learning_rate"));
  expect_near(values(actual.evaluations, "validation_loss"), values(expected.evaluations, "validation_loss"));
}

// The checkpoint and run.json lack these newer options, which must not give the results of another run.
TEST_F(RecordedRun, HasTheDefaultsOfNewerOptions) {
  for (const auto& [run, exit_code] : {std::pair("finished", 2), std::pair("interrupted", 1)}) {
    const ProgramRun other =
        train(run, "--learning-rate-min 1e-5 --decay-all --schedule step --decay-steps 30 --optimizer sgd --nesterov");
    EXPECT_EQ(other.exit_code, exit_code) << run;
    for (const char* what : {"learning-rate-min 0.0, now 1e-05", "decay-all false, now true",
                             "schedule linear, now step", "optimizer adamw, now sgd"}) {
      EXPECT_THAT(other.errors, HasSubstr(what)) << run;
    }
  }
}

TEST_F(RecordedRun, TheFinishedOneIsExtendedFromItsLastCheckpoint) {
  const ProgramRun longer = train("finished", "--extend --steps 70");
  ASSERT_EQ(longer.exit_code, 0) << longer.errors;
  EXPECT_THAT(longer.errors,
              HasSubstr("goes on after step 48, from " + (recorded_ / "finished/checkpoints/step-000048.h5").string()));
  EXPECT_EQ(train::read_run(recorded_ / "finished").done_steps(), 70u);
}

TEST_F(RecordedRun, ItsCheckpointsAreRead) {
  for (const char* name : {"finished", "interrupted"}) {
    const ProgramRun verified = run_mylos({"checkpoint", "verify", recorded_ / name});
    EXPECT_EQ(verified.exit_code, 0) << verified.errors;
    const ProgramRun shown = run_mylos({"checkpoint", "show", recorded_ / name, "--json"});
    EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  }
}

/// A copy of a recorded run of a family in the working directory. The run was stopped between its first evaluation and
/// the second, and trains from a prepared file.
class RecordedFamily : public testing::TestWithParam<const char*>, protected RankLauncher {
 protected:
  RecordedFamily() {
    fs::copy(source_dir() / "tests/golden/run_be1598fc" / GetParam(), ".", fs::copy_options::recursive);
  }

  /// Returns the recorded command.
  static Words train_words() { return split_words(read_file("command.txt")); }

  /// Expects the metrics that the run has without a stop.
  static void expect_whole(const ProgramRun& rest) {
    ASSERT_EQ(rest.exit_code, 0) << rest.errors;
    EXPECT_THAT(rest.errors, HasSubstr("goes on after step 7, from "));
    fs::create_directory("whole");
    fs::rename("whole.jsonl", "whole/metrics.jsonl");
    for (const char* name : {"loss", "gradient_norm", "learning_rate"}) {
      expect_near(values(records_of("run", "step"), name), values(records_of("whole", "step"), name));
    }
    expect_near(values(records_of("run", "evaluation"), "validation_loss"),
                values(records_of("whole", "evaluation"), "validation_loss"));
  }

  TemporaryDirectory directory_;
  WorkingDirectory here_{directory_.path()};
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (directory_ / "cache").string()};  ///< not the user's timing cache
};

TEST_P(RecordedFamily, GoesOnToTheSameEnd) { expect_whole(run_mylos(train_words())); }

TEST_P(RecordedFamily, GoesOnToTheSameEndOnTwoRanks) {
  if (mpiexec().empty()) GTEST_SKIP() << "a build without MPI";
  expect_whole(run_on(2, train_words()));
}

TEST_P(RecordedFamily, ItsBestModelIsEvaluatedAndUsed) {
  const ProgramRun scored = run_mylos({"eval", "--model", "run", "--data", "train.h5", "--output", "scored"});
  ASSERT_EQ(scored.exit_code, 0) << scored.errors;
  const auto numbers = [](const std::string& text) {
    return nlohmann::json::parse(text).get<std::map<std::string, double>>();
  };
  expect_near(numbers(scored.output), numbers(read_file("run/results.json")));
  write_file(directory_ / "text.txt", "a job waits in a queue.");
  write_file(directory_ / "picture.png", recorded_image_file("decoded.jsonl", "png RGB"));
  const std::map<std::string, Words> uses = {{"bert", {"ask", "--context", "text.txt", "what waits?"}},
                                             {"llama", {"generate", "--max-new-tokens", "4", "1. e4"}},
                                             {"resnet", {"classify", "picture.png"}}};
  const ProgramRun used = run_mylos(joined(uses.at(GetParam()), {"--model", "run"}));
  EXPECT_EQ(used.exit_code, 0) << used.errors;
  EXPECT_FALSE(used.output.empty());
}

TEST_P(RecordedFamily, APreparedFileThatCanNoLongerBeReadNamesTheCommandThatMakesItAgain) {
  fs::copy_file("train.h5", "old.h5");
  change_hdf5("train.h5", [](hid_t file) {
    ASSERT_GE(H5Adelete(file, "format_version"), 0);
    write_hdf5_attribute(file, "format_version", std::int64_t{9}, "train.h5");
  });
  const ProgramRun refused = run_mylos(train_words());
  EXPECT_EQ(refused.exit_code, 1);
  const std::string start = "; make it again with `mylos ";
  const std::string line = refused.error_lines().back();
  ASSERT_THAT(line, HasSubstr("/train.h5 has format version 9, this program reads "));
  ASSERT_THAT(line, HasSubstr(start));
  const std::size_t begin = line.find(start) + start.size(), end = line.find('`', begin);
  const std::map<std::string, std::pair<fs::path, std::string>> prepared_from = {
      {"bert", {source_dir() / "tests/golden/recorded_run/questions.json", " --max-length 60 --doc-stride 20"}},
      {"llama", {"old.h5", " --max-length 32"}},
      {"resnet", {"old.h5", ""}}};
  const auto& [data, options] = prepared_from.at(GetParam());
  const std::string command = replaced(line.substr(begin, end - begin), "MODEL", "model");
  const ProgramRun prepared = run_mylos(split_words(replaced(command, "DATA", data) + options));
  ASSERT_EQ(prepared.exit_code, 0) << prepared.errors;
  expect_whole(run_mylos(train_words()));
}

INSTANTIATE_TEST_SUITE_P(Families, RecordedFamily, testing::Values("bert", "llama", "resnet"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mylos::tests
