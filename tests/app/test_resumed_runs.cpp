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
  const fs::path whole = directory_ / "whole";
  ASSERT_EQ(train(whole, saving()).exit_code, 0);
  const auto resume_after = [&](std::size_t steps, const Words& more) {
    fs::remove_all(run_);
    fs::copy(whole, run_, fs::copy_options::recursive);
    interrupt(run_, steps);
    return train(run_, more);
  };
  for (const std::size_t steps : {2, 8}) {
    const ProgramRun run = resume_after(steps, {});
    ASSERT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.errors, HasSubstr("goes on after step " + std::to_string(steps) + ", from "));
    EXPECT_EQ(metrics(run_), metrics(whole));
    EXPECT_EQ(answers(run_), answers(whole));
    for (const char* file : {"last/model.safetensors", "best/model.safetensors", "results.json"}) {
      EXPECT_EQ(read_file(run_ / file), read_file(whole / file)) << file;
    }
  }
  const ProgramRun other = resume_after(4, {"--precision", "bfloat16", "--micro-batch", "2"});
  EXPECT_EQ(other.exit_code, 0) << other.errors;
  EXPECT_THAT(other.errors, HasSubstr("micro-batch 2, before 4: losses may differ in their last digits"));
  EXPECT_EQ(metrics(run_).back()["step"], 9);
}

TEST_F(ResumedRuns, ShowEachStepOnceInTensorBoard) {
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

TEST_F(ResumedRuns, ASignalLeavesACheckpoint) {
  const Words endless = {"--steps", "100000", "--eval-every", "100000"};
  std::uintmax_t written = 0;
  std::size_t step = 0;
  for (const auto& [signal, exit_code] : {std::pair{SIGUSR1, 85}, {SIGTERM, 143}, {SIGINT, 130}}) {
    RunningProgram running(words(run_, endless));
    await_metrics(run_, written);
    running.send(signal);
    const ProgramRun run = running.wait();
    EXPECT_EQ(run.exit_code, exit_code) << run.errors;
    EXPECT_THAT(run.errors, AllOf(HasSubstr(": checkpoint step-"), HasSubstr("iB/s")));
    EXPECT_THAT(run.errors, HasSubstr(step == 0 ? "" : "goes on after step " + std::to_string(step)));
    const fs::path file = parallel::resolve_checkpoint(run_);
    ASSERT_FALSE(file.empty());
    step = parallel::read_checkpoint_index(file).record.integer("step");
    EXPECT_EQ(metrics(run_).back()["step"], step);
    EXPECT_FALSE(fs::exists(run_ / "last")) << "its checkpoint has the weights";
    if (signal == SIGUSR1) expect_named_command_goes_on(run, step);
    written = fs::file_size(run_ / "metrics.jsonl");
  }
  const std::vector<json> rows = metrics(run_);
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i]["step"], i + 1);
  expect_refused(train(run_), "steps 100000, now 9");
}

TEST_F(ResumedRuns, AMicroBatchThatThePlanChoseIsTakenAgain) {
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
      {"train", "--config", directory_ / "little.json", "--output", run_, "--checkpoint-every", "4", "--keep", "20"});
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

TEST_F(ResumedRuns, HalfTellsTheStepsThatItSkips) {
  const Words half = {"--precision", "16-mixed", "--initial-loss-scale", "16777216"};
  const ProgramRun whole = train(directory_ / "whole", half);
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
}

TEST_F(ResumedRuns, TheDirectorysRules) {
  EXPECT_THAT(train(run_, {"--dry-run"}).errors, HasSubstr("would begin at step 1"));
  EXPECT_FALSE(fs::exists(run_));
  leave_unfinished(run_, 4);
  const std::string before = read_file(run_ / "metrics.jsonl");
  EXPECT_THAT(train(run_, {"--dry-run"}).errors,
              HasSubstr("would go on after step 4, from " + (run_ / "checkpoints" / "step-000004.h5").string()));
  EXPECT_THAT(train(run_, {"--dry-run", "--overwrite"}).errors, HasSubstr("would begin at step 1"));
  expect_refused(train(run_, {"--resume", "never"}), "--resume auto continues it, --overwrite starts over");
  const ProgramRun other = train(run_, {"--seed", "7", "--lr", "2e-3", "--micro-batch", "2"});
  expect_refused(other, "belongs to a run with other options: ");
  EXPECT_THAT(other.errors, AllOf(HasSubstr("seed 42, now 7"), HasSubstr("learning-rate 0.001, now 0.002"),
                                  Not(HasSubstr("micro-batch unset"))));
  EXPECT_EQ(read_file(run_ / "metrics.jsonl"), before);
  const EnvironmentVariable requeued("SLURM_RESTART_COUNT", "1");
  {
    const EnvironmentVariable job("SLURM_JOB_ID", "");
    // Options that only affect how the same numbers are computed may differ.
    const ProgramRun run = train(run_, {"--overwrite", "--micro-batch", "2", "--recompute", "layer", "--keep", "1"});
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_THAT(run.errors,
                AllOf(HasSubstr("goes on after step 4"), HasSubstr("keeps to its own run: --overwrite is not used")));
    EXPECT_THAT(train(run_, {"--dry-run"}).errors, HasSubstr("contains this run, which has finished"));
  }
  const EnvironmentVariable another("SLURM_JOB_ID", "8");
  const ProgramRun anew = train(run_, {"--overwrite", "--checkpoint-every", "never"});
  EXPECT_EQ(anew.exit_code, 0) << anew.errors;
  EXPECT_THAT(anew.errors, Not(HasSubstr("goes on")));
  EXPECT_TRUE(parallel::resolve_checkpoint(run_).empty());
}

TEST_F(ResumedRuns, APathBeginsAnotherRunThere) {
  leave_unfinished(run_, 4);
  const std::vector<json> whole = metrics(run_);
  const fs::path other = directory_ / "other";
  const Words from_run = {"--resume", run_ / "checkpoints" / "step-000002.h5", "--checkpoint-every", "3"};
  const ProgramRun run = train(other, from_run);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(metrics(other).front()["step"], 3);
  EXPECT_EQ(metrics(other).back()["step"], 9);
  EXPECT_TRUE(fs::exists(run_ / "checkpoints" / "step-000004.h5"));
  expect_refused(train(directory_ / "third", {"--resume", directory_ / "nowhere"}), "nowhere: contains no checkpoint");
  {  // A requeued job resumes from its own checkpoints.
    interrupt(other, 6);
    const EnvironmentVariable requeued("SLURM_RESTART_COUNT", "1");
    const ProgramRun again = train(other, from_run);
    ASSERT_EQ(again.exit_code, 0) << again.errors;
    EXPECT_THAT(again.errors, HasSubstr("goes on after step 6, from " + other.string()));
  }
  // Within its own directory the run resumes from there, and discards the later checkpoints.
  ASSERT_EQ(train(run_, {"--resume", run_ / "checkpoints" / "step-000002.h5", "--checkpoint-every", "4"}).exit_code, 0);
  EXPECT_EQ(metrics(run_), whole);
}

TEST_F(ResumedRuns, ADamagedCheckpointIsRefused) {
  leave_unfinished(run_, 4);
  const fs::path file = run_ / "checkpoints" / "step-000004.h5", older = run_ / "checkpoints" / "step-000002.h5";
  const std::string whole = read_file(file), before = read_file(run_ / "metrics.jsonl");
  const std::string intact =
      "; the earlier step-000002.h5 is intact: --resume " + older.string() + " continues from it";
  fs::resize_file(file, fs::file_size(file) - 1);
  const ProgramRun cut = train(run_);
  expect_refused(cut, "step-000004.h5: cannot open it as HDF5: ");
  expect_refused(cut, intact);
  const std::string array = "/optimizer/v/qa_outputs.weight";
  std::string flipped = whole;
  flipped[parallel::read_checkpoint_index(older).find(array)->offset] ^= 1;  // the same in every checkpoint of a run
  write_file(file, flipped);
  expect_refused(train(run_), "step-000004.h5: " + array + ", elements 0 to ");
  EXPECT_EQ(read_file(run_ / "metrics.jsonl"), before);
  const ProgramRun rest = train(run_, {"--resume", older});
  EXPECT_EQ(rest.exit_code, 0) << rest.errors;
}

TEST_F(ResumedRuns, AFinishedRunIsExtended) {
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
  const fs::path killed = directory_ / "killed";
  fs::copy(run_, killed, fs::copy_options::recursive);
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
  json state = json::parse(read_file(killed / "run.json"));  // killed before the first new checkpoint
  state["state"]["finished"] = false;
  state["steps"] = 14;
  write_file(killed / "run.json", state.dump());
  expect_refused(train(killed, {"--steps", "14"}), "steps 9, now 14");
  const ProgramRun rest = train(killed, longer);
  ASSERT_EQ(rest.exit_code, 0) << rest.errors;
  EXPECT_EQ(metrics(killed), metrics(run_));
}

// Its patience was exhausted, and no step followed.
TEST_F(ResumedRuns, AnExtensionBeginsToWaitAnew) {
  const auto waits = [&](const Words& more) {
    Words words = joined({"--dev", train_, "--eval-every", "1", "--patience", "1", "--lr", "1e-12"}, more);
    return train(run_, words);
  };
  const ProgramRun early = waits({"--steps", "4"});
  ASSERT_EQ(early.exit_code, 0) << early.errors;
  EXPECT_EQ(metrics(run_).back()["step"], 2) << "the second evaluation was no better";
  const ProgramRun extended = waits({"--steps", "8", "--extend"});
  ASSERT_EQ(extended.exit_code, 0) << extended.errors;
  EXPECT_EQ(metrics(run_).back()["step"], 3) << extended.errors;
}

TEST_F(ResumedRuns, WithoutACheckpointOnlyTheSameCommandStartsOver) {
  expect_refused(train(run_, {"--extend"}), "contains no run, which --extend needs; leave it out");
  ASSERT_EQ(train(run_, {"--checkpoint-every", "never"}).exit_code, 0);
  EXPECT_TRUE(parallel::resolve_checkpoint(run_).empty());
  expect_refused(train(run_, {"--extend", "--steps", "14"}), "its run has no checkpoint, which --extend needs");
  json run = json::parse(read_file(run_ / "run.json"));
  run["state"]["finished"] = false;
  write_file(run_ / "run.json", run.dump());
  fs::remove_all(run_ / "last");
  const ProgramRun other = train(run_, {"--seed", "7"});
  expect_refused(other, "contains an unfinished run with other options and no checkpoint to resume from: ");
  EXPECT_THAT(other.errors, HasSubstr("seed 42, now 7"));
  const ProgramRun again = train(run_);
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_THAT(again.errors, HasSubstr("interrupted before its first checkpoint: it starts over"));
  EXPECT_EQ(metrics(run_).back()["step"], 9);
}

TEST_F(ResumedRuns, CheckpointsComeByDefaultAndAsTrainerSays) {
  const auto steps_of = [this](const Words& more) {
    Words all = joined({"--keep", "20", "--overwrite"}, more);
    const ProgramRun run = train(run_, all);
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    std::vector<std::size_t> steps;
    for (const auto& entry : parallel::list_checkpoints(run_ / "checkpoints")) steps.push_back(entry.step);
    return steps;
  };
  EXPECT_THAT(steps_of({}), ElementsAre(9)) << "ten minutes, and the last step";
  EXPECT_EQ(json::parse(read_file(run_ / "run.json"))["checkpoint-every"], "600s");
  EXPECT_THAT(steps_of({"--save_strategy", "epoch"}), ElementsAre(3, 6, 9));
}

MYLOS_FOR_EACH_FAMILY(ResumedRunsOfFamily);

}  // namespace
}  // namespace mylos::tests
