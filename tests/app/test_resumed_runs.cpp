#include "tests/app/family.hpp"
#include "tests/app/resumed_runs.hpp"
#include "tests/support/tensorboard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iterator>
#include <map>
#include <sstream>
#include <thread>

/// Runs of the program that are interrupted and resumed.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

using ResumedRunsOfFamily = OnFamily<ResumedRuns>;

TEST_P(ResumedRunsOfFamily, GiveTheNumbersOfAnUninterruptedRun) {
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

TEST_P(ResumedRunsOfFamily, ShowEachStepOnceInTensorBoard) {
  if (const std::string obstacle = tensorboard_obstacle(); !obstacle.empty()) GTEST_SKIP() << obstacle;
  leave_unfinished(run_, 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // event files are ordered by creation time in seconds
  ASSERT_EQ(train(run_).exit_code, 0);
  const json read = json::parse(tensorboard_reads(directory_.path()));
  const json& scalars = read["scalars"]["run"];
  const std::vector<json> rows = metrics(run_);
  std::vector<json> losses, scores;
  for (const json& row : rows) {
    if (row.contains("loss")) losses.push_back({row["step"], row["loss"].get<float>()});
    if (row.contains(family_.metric)) scores.push_back({row["step"], row[family_.metric].get<float>()});
  }
  ASSERT_EQ(losses.size(), 9u);
  EXPECT_EQ(scalars["train/loss"], json(losses));
  EXPECT_EQ(scalars["eval/" + family_.metric], json(scores));
  const json& session = read["sessions"]["run"];
  EXPECT_EQ(session["status"], "STATUS_SUCCESS");
  EXPECT_EQ(session["hyperparameters"]["learning-rate"], 1e-3);
  EXPECT_EQ(session["hyperparameters"]["mode"], "replicated");
  EXPECT_EQ(session["metrics"]["eval/" + family_.metric], scores.back()[1]);
}

TEST_P(ResumedRunsOfFamily, ASignalLeavesACheckpoint) {
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
  expect_named_command_goes_on(first, step);
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
  expect_refused(run, "belongs to a run with other options: ");
  EXPECT_THAT(run.errors, AllOf(HasSubstr("seed 42, now 7"), HasSubstr("learning-rate 0.001, now 0.002"),
                                Not(HasSubstr("micro-batch unset"))));
  // Options that only affect how the same numbers are computed may differ.
  const ProgramRun other = train(run_, {"--micro-batch", "2", "--recompute", "layer", "--keep", "1"});
  EXPECT_EQ(other.exit_code, 0) << other.errors;
}

TEST_P(ResumedRunsOfFamily, AMicroBatchThatThePlanChoseIsTakenAgain) {
  const auto micro_batch = [](const fs::path& run) {
    return json::parse(read_file(run / "run.json"))["resolved"]["micro-batch"].get<int>();
  };
  ASSERT_EQ(train(directory_ / "roomy").exit_code, 0);
  ASSERT_EQ(micro_batch(directory_ / "roomy"), 4);
  // The same run with less free memory: as `roomy` would have recorded it there.
  json little = json::parse(read_file(directory_ / "roomy" / "run.json"));
  little["resolved"]["micro-batch"] = 3;
  little.erase("state");
  write_file(directory_ / "little.json", little.dump());
  const ProgramRun whole = run_mylos(
      {"train", "--config", directory_ / "little.json", "--output", run_, "--checkpoint-every", "1", "--keep", "20"});
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  ASSERT_EQ(micro_batch(run_), 3);
  const std::vector<json> rows = metrics(run_);
  interrupt(run_, 4);
  const ProgramRun again = train(run_);
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(micro_batch(run_), 3);
  EXPECT_EQ(metrics(run_), rows);
  EXPECT_THAT(again.errors, Not(HasSubstr("losses may differ")));
}

TEST_P(ResumedRunsOfFamily, AnotherMicroBatchIsTold) {
  leave_unfinished(run_, 4);
  const ProgramRun run = train(run_, {"--micro-batch", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("micro-batch 2, before 4: losses may differ in their last digits"));
}

TEST_P(ResumedRunsOfFamily, APrecisionMayChange) {
  leave_unfinished(run_, 4);
  const ProgramRun run = train(run_, {"--precision", "bfloat16"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(metrics(run_).back()["step"], 9);
}

TEST_P(ResumedRunsOfFamily, HalfGoesOnWithItsLossScale) {
  const Words half = {"--precision", "16-mixed", "--initial-loss-scale", "16777216"};
  Words saving = half;
  saving.insert(saving.end(), {"--checkpoint-every", "1", "--keep", "20"});
  const ProgramRun whole = train(directory_ / "whole", saving);
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  EXPECT_THAT(whole.errors, AllOf(HasSubstr("compute  half, loss scale 16777216, matrix products by"),
                                  HasSubstr("step 1: the gradient is not finite with loss scale 16777216: the update "
                                            "is skipped, and the next step has 8388608"),
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

TEST_P(ResumedRunsOfFamily, SgdGoesOnWithItsMomentumAndSchedule) {
  const Words sgd = {"--optimizer",    "sgd",  "--momentum",    "0.9", "--nesterov",          "--lr",  "0.1",
                     "--schedule",     "step", "--decay-steps", "3,6", "--learning-rate-min", "0.005", "--decay-all",
                     "--weight-decay", "0.01"};
  Words saving = sgd;
  saving.insert(saving.end(), {"--checkpoint-every", "1", "--keep", "20"});
  const ProgramRun whole = train(run_, saving);
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  const std::vector<json> rows = metrics(run_);
  const std::string weights = read_file(run_ / "last/model.safetensors");
  std::vector<double> rates;
  for (const json& row : rows) {
    if (row.contains("loss")) rates.push_back(row["learning_rate"]);
  }
  const double decayed = 0.1 * 0.1;
  EXPECT_EQ(rates, (std::vector<double>{0.1, 0.1, 0.1, decayed, decayed, decayed, 0.005, 0.005, 0.005}));
  interrupt(run_, 4);
  expect_refused(train(run_, {"--optimizer", "adamw"}), "optimizer sgd, now adamw");
  expect_refused(train(run_, {"--optimizer", "sgd"}), "nesterov true, now false");
  const ProgramRun rest = train(run_, sgd);
  ASSERT_EQ(rest.exit_code, 0) << rest.errors;
  EXPECT_THAT(rest.errors, HasSubstr("goes on after step 4, from "));
  EXPECT_EQ(metrics(run_), rows);
  EXPECT_EQ(read_file(run_ / "last/model.safetensors"), weights);
}

TEST_F(ResumedRuns, TheDirectorysRules) {
  leave_unfinished(run_, 4);
  expect_refused(train(run_, {"--resume", "never"}), "--resume auto continues it, --overwrite starts over");
  {
    const EnvironmentVariable requeued("SLURM_RESTART_COUNT", "1"), job("SLURM_JOB_ID", "");
    const ProgramRun run = train(run_, {"--overwrite"});
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.errors, HasSubstr("goes on after step 4"));
    EXPECT_THAT(run.errors, HasSubstr("keeps to its own run: --overwrite is not used"));
    EXPECT_THAT(train(run_, {"--overwrite", "--seed", "7"}).errors,
                HasSubstr("keeps to its own run: --overwrite is not used"));
  }
  {
    interrupt(run_, 4);
    const EnvironmentVariable requeued("SLURM_RESTART_COUNT", "1"), another("SLURM_JOB_ID", "8");
    const ProgramRun run = train(run_, {"--overwrite"});
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.errors, Not(HasSubstr("goes on")));
  }
  fs::remove_all(run_);
  leave_unfinished(run_, 4);
  const ProgramRun anew = train(run_, {"--overwrite"});
  EXPECT_EQ(anew.exit_code, 0) << anew.errors;
  EXPECT_THAT(anew.errors, Not(HasSubstr("goes on")));
  EXPECT_FALSE(fs::exists(run_ / "checkpoints" / "step-000004.h5"));
}

// A job that started in the directory of another run, and was then requeued, resumes from its own checkpoints.
TEST_F(ResumedRuns, ARequeuedJobKeepsItsOwnCheckpoints) {
  leave_unfinished(run_, 4);
  const fs::path other = directory_ / "other";
  const Words from_run = {"--resume", run_ / "checkpoints" / "step-000003.h5", "--checkpoint-every", "1", "--keep",
                          "20"};
  ASSERT_EQ(train(other, from_run).exit_code, 0);
  interrupt(other, 6);
  const EnvironmentVariable requeued("SLURM_RESTART_COUNT", "1");
  const ProgramRun run = train(other, from_run);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("goes on after step 6, from " + other.string()));
  EXPECT_TRUE(fs::exists(other / "checkpoints" / "step-000004.h5"));
}

TEST_F(ResumedRuns, TheSameJobScriptWorksAgainBeforeTheFirstCheckpoint) {
  leave_unfinished(run_, 4);
  for (const char* name : {"checkpoints", "last"}) fs::remove_all(run_ / name);
  const ProgramRun other = train(run_, {"--seed", "7"});
  expect_refused(other, "contains an unfinished run with other options and no checkpoint to resume from: ");
  EXPECT_THAT(other.errors, HasSubstr("seed 42, now 7"));
  const ProgramRun run = train(run_);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("interrupted before its first checkpoint: it starts over"));
  EXPECT_EQ(metrics(run_).back()["step"], 9);
}

TEST_F(ResumedRuns, APathBeginsAnotherRunThere) {
  leave_unfinished(run_, 4);
  const fs::path other = directory_ / "other";
  const ProgramRun run = train(other, {"--resume", run_ / "checkpoints" / "step-000003.h5"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(metrics(other).front()["step"], 4);
  EXPECT_EQ(metrics(other).back()["step"], 9);
  EXPECT_TRUE(fs::exists(run_ / "checkpoints" / "step-000004.h5"));
  expect_refused(train(directory_ / "third", {"--resume", directory_ / "nowhere"}), "nowhere: contains no checkpoint");
  // Within its own directory the run resumes from there, and discards the later checkpoints.
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
  expect_refused(train(run_), "; the earlier step-000003.h5 is intact: --resume " +
                                  (run_ / "checkpoints" / "step-000003.h5").string() + " continues from it");
  EXPECT_EQ(read_file(run_ / "metrics.jsonl"), before);
  const ProgramRun older = train(run_, {"--resume", run_ / "checkpoints" / "step-000003.h5"});
  EXPECT_EQ(older.exit_code, 0) << older.errors;
}

TEST_P(ResumedRunsOfFamily, WhatIsNoCheckpointOfTheRunIsRefused) {
  leave_unfinished(run_, 4);
  const fs::path file = run_ / "checkpoints" / "step-000004.h5", features = directory_ / "features.h5";
  const std::string whole = read_file(file);
  ASSERT_EQ(run_mylos({"prepare", "--model", model_, "--data", train_, "--output", features}).exit_code, 0);
  write_file(file, read_file(features));
  expect_refused(train(run_), "step-000004.h5 is an HDF5 file, but not a checkpoint of Mylos");
  write_file(file, "no HDF5");
  expect_refused(train(run_), "step-000004.h5 is not an HDF5 file");
  std::string flipped = whole;
  const auto offset = parallel::read_checkpoint_index(run_ / "checkpoints" / "step-000003.h5")
                          .find("/optimizer/" + family_.slot + "/" + family_.row)
                          ->offset;  // in every checkpoint of a run
  flipped[offset] = static_cast<char>(flipped[offset] ^ 1);
  write_file(file, flipped);
  expect_refused(train(run_), "step-000004.h5: /optimizer/" + family_.slot + "/" + family_.row + ", elements 0 to ");
  write_file(file, whole);
  EXPECT_EQ(train(run_).exit_code, 0);
}

TEST_F(ResumedRuns, ADryRunSaysWhereItWouldStart) {
  EXPECT_THAT(train(run_, {"--dry-run"}).errors, HasSubstr("would begin at step 1"));
  EXPECT_FALSE(fs::exists(run_));
  leave_unfinished(run_, 4);
  const auto before = read_file(run_ / "metrics.jsonl");
  EXPECT_THAT(train(run_, {"--dry-run"}).errors,
              HasSubstr("would go on after step 4, from " + (run_ / "checkpoints" / "step-000004.h5").string()));
  EXPECT_THAT(train(run_, {"--dry-run", "--overwrite"}).errors, HasSubstr("would begin at step 1"));
  expect_refused(train(run_, {"--dry-run", "--resume", "never"}), "--resume auto continues it");
  expect_refused(train(run_, {"--dry-run", "--seed", "7"}), "seed 42, now 7");
  EXPECT_EQ(read_file(run_ / "metrics.jsonl"), before);
  ASSERT_EQ(train(run_).exit_code, 0);
  const ProgramRun finished = train(run_, {"--dry-run"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.errors, HasSubstr("contains this run, which has finished"));
}

TEST_P(ResumedRunsOfFamily, AFinishedRunIsExtended) {
  ASSERT_EQ(train(run_, {"--checkpoint-every", "4"}).exit_code, 0);
  const fs::path file = run_ / "checkpoints" / "step-000009.h5";
  ASSERT_TRUE(fs::exists(file)) << "of the last step";
  const ProgramRun reported = train(run_, {"--steps", "14"});
  EXPECT_EQ(reported.exit_code, 2);
  EXPECT_THAT(reported.errors, AllOf(HasSubstr("steps 9, now 14"), HasSubstr("--extend")));
  const Words longer = {"--extend", "--steps", "14"};
  EXPECT_EQ(train(run_, {"--extend", "--steps", "14", "--seed", "7"}).exit_code, 2);
  const ProgramRun shorter = train(run_, {"--extend", "--steps", "5"});
  EXPECT_EQ(shorter.exit_code, 2);
  EXPECT_THAT(shorter.errors,
              HasSubstr("--extend: the run has 9 steps, and 5 are requested; give larger --steps or --epochs"));
  const ProgramRun run = train(run_, longer);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors,
              AllOf(HasSubstr("goes on after step 9, from " + file.string()),
                    HasSubstr("extended from 9 steps to 14: the learning rate follows the longer schedule")));
  std::map<std::size_t, double> rates;
  for (const json& row : metrics(run_)) {
    if (row.contains("learning_rate")) rates[row["step"]] = row["learning_rate"];
  }
  ASSERT_EQ(rates.size(), 14u);
  EXPECT_DOUBLE_EQ(rates[9], 1e-3 * 1 / 9);
  EXPECT_DOUBLE_EQ(rates[10], 1e-3 * 5 / 14);
  const ProgramRun again = train(run_, longer);
  EXPECT_EQ(again.exit_code, 0) << "finished as it was told: " << again.errors;
  EXPECT_EQ(again.output, read_file(run_ / "results.json"));
}

// Its patience was exhausted, and no step followed.
TEST_F(ResumedRuns, AnExtensionBeginsToWaitAnew) {
  const auto waits = [&](const Words& more) {
    Words words = {"--dev", train_, "--eval-every", "1", "--patience", "1", "--lr", "1e-12"};
    words.insert(words.end(), more.begin(), more.end());
    return train(run_, words);
  };
  const ProgramRun early = waits({"--steps", "4"});
  ASSERT_EQ(early.exit_code, 0) << early.errors;
  EXPECT_EQ(metrics(run_).back()["step"], 2) << "the second evaluation was no better";
  const ProgramRun extended = waits({"--steps", "8", "--extend"});
  ASSERT_EQ(extended.exit_code, 0) << extended.errors;
  EXPECT_EQ(metrics(run_).back()["step"], 3) << extended.errors;
}

TEST_F(ResumedRuns, AnExtensionThatWasKilledGoesOn) {
  ASSERT_EQ(train(run_).exit_code, 0);
  json run = json::parse(read_file(run_ / "run.json"));  // its state before the first new checkpoint
  run["state"]["finished"] = false;
  run["steps"] = 14;
  write_file(run_ / "run.json", run.dump());
  expect_refused(train(run_, {"--steps", "14"}), "steps 9, now 14");
  const ProgramRun rest = train(run_, {"--extend", "--steps", "14"});
  ASSERT_EQ(rest.exit_code, 0) << rest.errors;
  EXPECT_EQ(metrics(run_).back()["step"], 14);
}

TEST_F(ResumedRuns, NothingIsExtendedWithoutACheckpoint) {
  expect_refused(train(run_, {"--extend"}), "contains no run, which --extend needs; leave it out");
  ASSERT_EQ(train(run_, {"--checkpoint-every", "never"}).exit_code, 0);
  EXPECT_TRUE(parallel::resolve_checkpoint(run_).empty());
  expect_refused(train(run_, {"--extend", "--steps", "14"}), "its run has no checkpoint, which --extend needs");
}

TEST_F(ResumedRuns, CheckpointsComeByDefaultAndAsTrainerSays) {
  const auto steps_of = [this](const Words& more) {
    Words all = {"--keep", "20", "--overwrite"};
    all.insert(all.end(), more.begin(), more.end());
    const ProgramRun run = train(run_, all);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    std::vector<std::size_t> steps;
    for (const auto& entry : parallel::list_checkpoints(run_ / "checkpoints")) steps.push_back(entry.step);
    return steps;
  };
  EXPECT_THAT(steps_of({}), ElementsAre(9)) << "ten minutes, and the last step";
  EXPECT_EQ(json::parse(read_file(run_ / "run.json"))["checkpoint-every"], "600s");
  EXPECT_THAT(steps_of({"--checkpoint-every", "never"}), ElementsAre());
  EXPECT_THAT(steps_of({"--save_strategy", "epoch"}), ElementsAre(3, 6, 9));
  EXPECT_THAT(steps_of({"--save_strategy", "no", "--save_steps", "2"}), ElementsAre());
  EXPECT_THAT(steps_of({"--save_strategy", "steps", "--save_steps", "4"}), ElementsAre(4, 8, 9));
}

/// The ResNet family is killed on several ranks instead (test_faults.cpp).
using KilledRunsOfFamily = OnFamily<ResumedRuns>;

TEST_P(KilledRunsOfFamily, KillsAreSurvived) {
  ASSERT_EQ(train(directory_ / "whole", {"--steps", "60", "--eval-every", "60"}).exit_code, 0);
  const Words words = {"--steps", "60", "--eval-every", "60", "--checkpoint-every", "1"};
  for (int kill = 0; kill < 15; ++kill) {
    RunningProgram running(this->words(run_, words));
    std::this_thread::sleep_for(std::chrono::milliseconds(400 + 70 * kill));
    running.send(SIGKILL);
    const ProgramRun run = running.wait();
    if (run.exit_code == 0) break;
    ASSERT_EQ(run.exit_code, 137) << run.errors;
  }
  const ProgramRun last = train(run_, words);
  EXPECT_EQ(last.exit_code, 0) << last.errors;
  EXPECT_EQ(metrics(run_), metrics(directory_ / "whole"));
}

MYLOS_FOR_EACH_FAMILY(ResumedRunsOfFamily);
INSTANTIATE_TEST_SUITE_P(Families, KilledRunsOfFamily, testing::Values(&bert_family(), &llama_family()), family_name);

}  // namespace
}  // namespace mylos::tests
