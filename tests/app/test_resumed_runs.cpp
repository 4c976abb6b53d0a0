#include "parallel/checkpoint_directory.hpp"
#include "parallel/checkpoint_file.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/support/tensorboard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <map>
#include <sstream>
#include <thread>

/// Runs of the program that are interrupted and go on.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

class ResumedRuns : public TinyRun {
 protected:
  void SetUp() override {
    if (!parallel::has_checkpoint_files()) GTEST_SKIP() << "A build without HDF5";
    TinyRun::SetUp();
  }

  Words words(const fs::path& output, const Words& more = {}) const {
    Words all = {"train", "--model",      model_,      "--train", train_,
                 "--dev", train_,         "--output",  output,    "--max-length",
                 "60",    "--doc-stride", "20",        "--batch", "4",
                 "--lr",  "1e-3",         "--dropout", "0.1",     "--steps",
                 "9",     "--eval-every", "2",         "--gemm",  default_provider()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  ProgramRun train(const fs::path& output, const Words& more = {}) const { return run_mylos(words(output, more)); }

  /// A run that ended after `steps` of its 9 steps, as a kill would leave it: the later checkpoints are gone.
  void leave_unfinished(const fs::path& output, std::size_t steps) const {
    ASSERT_EQ(train(output, {"--checkpoint-every", "1", "--keep", "20"}).exit_code, 0);
    interrupt(output, steps);
  }

  /// A finished run with all its checkpoints becomes one that ended after `steps`.
  static void interrupt(const fs::path& output, std::size_t steps) {
    json run = json::parse(read_file(output / "run.json"));
    run["state"]["finished"] = false;
    write_file(output / "run.json", run.dump());
    for (const auto& entry : parallel::list_checkpoints(output / "checkpoints")) {
      if (entry.step > steps) fs::remove(entry.file);
    }
    write_file(output / "checkpoints" / "latest", parallel::checkpoint_file_name(steps).string() + "\n");
  }

  /// metrics.jsonl without what is never the same.
  static std::vector<json> metrics(const fs::path& output) {
    std::vector<json> rows;
    std::istringstream lines(read_file(output / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      json row = json::parse(line);
      if (row.contains("checkpoint")) continue;  // a run that went on has made others
      for (const char* key :
           {"seconds", "tokens_per_second", "memory", "data_seconds", "exchange_seconds", "update_seconds", "time"}) {
        row.erase(key);
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

  /// What was kept of each evaluation, by file.
  static std::map<std::string, std::string> answers(const fs::path& output) {
    std::map<std::string, std::string> kept;
    for (const auto& entry : fs::directory_iterator(output / "evaluations")) {
      kept[entry.path().filename()] = read_file(entry.path());
    }
    return kept;
  }

  void expect_refused(const ProgramRun& run, const std::string& what) const {
    EXPECT_EQ(run.exit_code, 1) << run.errors;
    EXPECT_TRUE(run.error_lines().back().starts_with("mylos: error: ")) << run.errors;
    EXPECT_THAT(run.error_lines().back(), HasSubstr(what));
  }
};

TEST_F(ResumedRuns, GiveTheNumbersOfAnUninterruptedRun) {
  ASSERT_EQ(train(directory_ / "whole").exit_code, 0);
  for (const std::size_t steps : {1, 4, 8}) {
    leave_unfinished(run_, steps);
    const ProgramRun run = train(run_);
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.errors, HasSubstr("goes on after step " + std::to_string(steps) + ", from "));
    EXPECT_EQ(metrics(run_), metrics(directory_ / "whole"));
    EXPECT_EQ(answers(run_), answers(directory_ / "whole"));
    for (const char* file : {"last/model.safetensors", "best/model.safetensors", "results.json"}) {
      EXPECT_EQ(read_file(run_ / file), read_file(directory_ / "whole" / file)) << file;
    }
    fs::remove_all(run_);
  }
}

TEST_F(ResumedRuns, ShowEachStepOnceInTensorBoard) {
  if (const std::string obstacle = tensorboard_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  leave_unfinished(run_, 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // event files are in the order of their seconds
  ASSERT_EQ(train(run_).exit_code, 0);
  const json read = json::parse(tensorboard_reads(directory_.path()));
  const json& scalars = read["scalars"]["run"];
  const std::vector<json> rows = metrics(run_);
  std::vector<json> losses, f1;
  for (const json& row : rows) {
    if (row.contains("loss")) losses.push_back({row["step"], row["loss"].get<float>()});
    if (row.contains("f1")) f1.push_back({row["step"], row["f1"].get<float>()});
  }
  ASSERT_EQ(losses.size(), 9u);
  EXPECT_EQ(scalars["train/loss"], json(losses));
  EXPECT_EQ(scalars["eval/f1"], json(f1));
  const json& session = read["sessions"]["run"];
  EXPECT_EQ(session["status"], "STATUS_SUCCESS");
  EXPECT_EQ(session["hyperparameters"]["learning-rate"], 1e-3);
  EXPECT_EQ(session["hyperparameters"]["mode"], "replicated");
  EXPECT_EQ(session["metrics"]["eval/f1"], f1.back()[1]);
}

TEST_F(ResumedRuns, ASignalLeavesACheckpoint) {
  const Words endless = {"--steps", "100000", "--eval-every", "100000"};
  RunningProgram running(words(run_, endless));
  await_metrics(run_);
  running.send(SIGUSR1);
  const ProgramRun first = running.wait();
  EXPECT_EQ(first.exit_code, 85) << first.errors;
  EXPECT_THAT(first.errors, AllOf(HasSubstr(": checkpoint step-"), HasSubstr("iB/s")));
  const fs::path file = parallel::resolve_checkpoint(run_);
  ASSERT_FALSE(file.empty());
  const std::size_t step = parallel::read_checkpoint_index(file).record.integer("step");
  EXPECT_EQ(metrics(run_).back()["step"], step);
  const std::uintmax_t written = fs::file_size(run_ / "metrics.jsonl");
  RunningProgram again(words(run_, endless));
  await_metrics(run_, written);
  again.send(SIGTERM);
  const ProgramRun second = again.wait();
  EXPECT_EQ(second.exit_code, 143) << second.errors;
  EXPECT_THAT(second.errors, HasSubstr("goes on after step " + std::to_string(step)));
  const std::vector<json> rows = metrics(run_);
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i]["step"], i + 1);
}

TEST_F(ResumedRuns, OptionsThatDifferAreListed) {
  leave_unfinished(run_, 4);
  const ProgramRun run = train(run_, {"--seed", "7", "--lr", "2e-3", "--micro-batch", "2"});
  expect_refused(run, "is of a run with other options: ");
  EXPECT_THAT(run.errors, AllOf(HasSubstr("seed 42, now 7"), HasSubstr("learning-rate 0.001, now 0.002"),
                                Not(HasSubstr("micro-batch unset"))));
  // What only decides how the same numbers come about may differ.
  const ProgramRun other = train(run_, {"--micro-batch", "2", "--recompute", "layer", "--keep", "1"});
  EXPECT_EQ(other.exit_code, 0) << other.errors;
}

TEST_F(ResumedRuns, APrecisionMayChange) {
  leave_unfinished(run_, 4);
  const ProgramRun run = train(run_, {"--precision", "bfloat16"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(metrics(run_).back()["step"], 9);
}

TEST_F(ResumedRuns, HalfGoesOnWithItsLossScale) {
  const Words half = {"--precision", "16-mixed", "--initial-loss-scale", "16777216"};
  Words saving = half;
  saving.insert(saving.end(), {"--checkpoint-every", "1", "--keep", "20"});
  const ProgramRun whole = train(directory_ / "whole", saving);
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  EXPECT_THAT(whole.errors, AllOf(HasSubstr("compute  half, loss scale 16777216, matrix products by"),
                                  HasSubstr("step 1: the gradient is not finite with loss scale 16777216: nothing is "
                                            "updated, the next has 8388608"),
                                  HasSubstr(" skipped")));
  const std::vector<json> rows = metrics(directory_ / "whole");
  EXPECT_EQ(rows.front()["loss_scale"], 16777216.0);
  EXPECT_EQ(rows.front()["skipped"], true);
  EXPECT_TRUE(rows.front()["gradient_norm"].is_null());
  const json run = json::parse(read_file(directory_ / "whole" / "run.json"));
  EXPECT_EQ(run["precision"], "half");
  EXPECT_EQ(run["initial-loss-scale"], 16777216);
  fs::copy(directory_ / "whole", run_, fs::copy_options::recursive);
  interrupt(run_, 4);
  const ProgramRun rest = train(run_, half);
  ASSERT_EQ(rest.exit_code, 0) << rest.errors;
  EXPECT_EQ(metrics(run_), rows);
  EXPECT_EQ(read_file(run_ / "last/model.safetensors"), read_file(directory_ / "whole" / "last/model.safetensors"));
}

TEST_F(ResumedRuns, TheDirectorysRules) {
  leave_unfinished(run_, 4);
  expect_refused(train(run_, {"--resume", "never"}), "--resume auto goes on with it, --overwrite starts anew");
  {
    const EnvironmentVariable requeued("SLURM_RESTART_COUNT", "1");
    const ProgramRun run = train(run_, {"--overwrite"});
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.errors, HasSubstr("goes on after step 4"));
  }
  fs::remove_all(run_);
  leave_unfinished(run_, 4);
  const ProgramRun anew = train(run_, {"--overwrite"});
  EXPECT_EQ(anew.exit_code, 0) << anew.errors;
  EXPECT_THAT(anew.errors, Not(HasSubstr("goes on")));
  EXPECT_FALSE(fs::exists(run_ / "checkpoints" / "step-000004.h5"));
}

TEST_F(ResumedRuns, APathBeginsAnotherRunThere) {
  leave_unfinished(run_, 4);
  const fs::path other = directory_ / "other";
  const ProgramRun run = train(other, {"--resume", run_ / "checkpoints" / "step-000003.h5"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(metrics(other).front()["step"], 4);
  EXPECT_EQ(metrics(other).back()["step"], 9);
  EXPECT_TRUE(fs::exists(run_ / "checkpoints" / "step-000004.h5"));
  expect_refused(train(directory_ / "third", {"--resume", directory_ / "nowhere"}), "nowhere: no checkpoint is there");
  // Within its own directory the run goes on from there, and forgets what came after.
  ASSERT_EQ(train(run_, {"--resume", run_ / "checkpoints" / "step-000002.h5", "--checkpoint-every", "4"}).exit_code, 0);
  EXPECT_EQ(metrics(run_), [&] {
    EXPECT_EQ(train(directory_ / "whole").exit_code, 0);
    return metrics(directory_ / "whole");
  }());
}

TEST_F(ResumedRuns, ADamagedCheckpointIsRefused) {
  leave_unfinished(run_, 4);
  const fs::path file = run_ / "checkpoints" / "step-000004.h5";
  const std::string before = read_file(run_ / "metrics.jsonl");
  fs::resize_file(file, fs::file_size(file) - 1);
  expect_refused(train(run_), "step-000004.h5: cannot open it as HDF5: ");
  EXPECT_EQ(read_file(run_ / "metrics.jsonl"), before);
  const ProgramRun older = train(run_, {"--resume", run_ / "checkpoints" / "step-000003.h5"});
  EXPECT_EQ(older.exit_code, 0) << older.errors;
}

TEST_F(ResumedRuns, WhatIsNoCheckpointOfTheRunIsRefused) {
  leave_unfinished(run_, 4);
  const fs::path file = run_ / "checkpoints" / "step-000004.h5", features = directory_ / "features.h5";
  const std::string whole = read_file(file);
  ASSERT_EQ(run_mylos({"prepare", "--model", model_, "--data", train_, "--output", features}).exit_code, 0);
  write_file(file, read_file(features));
  expect_refused(train(run_), "step-000004.h5 is an HDF5 file, but no checkpoint of Mylos");
  write_file(file, "no HDF5");
  expect_refused(train(run_), "step-000004.h5 is not an HDF5 file");
  std::string flipped = whole;
  const auto place = parallel::read_checkpoint_index(run_ / "checkpoints" / "step-000003.h5")
                         .find("/optimizer/v/qa_outputs.weight")
                         ->offset;  // in every checkpoint of a run
  flipped[place] = static_cast<char>(flipped[place] ^ 1);
  write_file(file, flipped);
  expect_refused(train(run_), "step-000004.h5: /optimizer/v/qa_outputs.weight, elements 0 to ");
  write_file(file, whole);
  EXPECT_EQ(train(run_).exit_code, 0);
}

TEST_F(ResumedRuns, KillsAreSurvived) {
  ASSERT_EQ(train(directory_ / "whole", {"--steps", "60", "--eval-every", "60"}).exit_code, 0);
  const Words words = {"--steps", "60", "--eval-every", "60", "--checkpoint-every", "1"};
  for (int kill = 0; kill < 15; ++kill) {
    RunningProgram running(this->words(run_, words));
    std::this_thread::sleep_for(std::chrono::milliseconds(400 + 70 * kill));
    running.send(SIGKILL);
    const int exit_code = running.wait().exit_code;
    if (exit_code == 0) break;
    ASSERT_EQ(exit_code, 137);
    if (fs::exists(run_ / "run.json") && parallel::resolve_checkpoint(run_).empty()) fs::remove_all(run_);
  }
  const ProgramRun last = train(run_, words);
  EXPECT_EQ(last.exit_code, 0) << last.errors;
  EXPECT_EQ(metrics(run_), metrics(directory_ / "whole"));
}

}  // namespace
}  // namespace mylos::tests
