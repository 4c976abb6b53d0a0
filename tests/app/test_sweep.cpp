#include "app/options/commands.hpp"
#include "app/options/options.hpp"
#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <set>

/// mylos sweep: its points, its job script, and its table.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class Sweep : public EvaluatedRun {
 protected:
  /// Returns the settings of a tiny run that is swept over `sweep`.
  json settings_of(const json& sweep) const {
    return {{"settings",
             {{"model", model_.string()},
              {"train", train_.string()},
              {"dev", dev_.string()},
              {"steps", 6},
              {"eval_every", 3},
              {"max_length", 60},
              {"doc_stride", 20},
              {"batch", 4},
              {"gemm", default_provider()}}},
            {"sweep", sweep}};
  }
  ProgramRun sweep(const std::string& settings, const Words& more = {}) const {
    write_file(file_, settings);
    return run_mylos(joined({"sweep", file_, "--output", sweep_, "--job", "slurm"}, more));
  }
  ProgramRun sweep(const json& settings, const Words& more = {}) const { return sweep(settings.dump(), more); }
  ProgramRun train_point(const std::string& name, const Words& more = {}) const {
    return run_mylos(joined({"train", "--config", sweep_ / "points" / (name + ".json")}, more));
  }
  ProgramRun table() const { return run_mylos({"sweep", sweep_}); }

  /// Expects one line that has all `parts`, and that nothing was written.
  void expect_refused(const ProgramRun& run, const Words& parts) const {
    EXPECT_NE(run.exit_code, 0);
    ASSERT_EQ(run.error_lines().size(), 1u) << run.errors;
    EXPECT_TRUE(run.errors.starts_with("mylos: error: ")) << run.errors;
    for (const std::string& part : parts) EXPECT_THAT(run.errors, HasSubstr(part));
    EXPECT_EQ(run.output, "");
  }
  void expect_refused(const json& settings, const Words& parts) const {
    SCOPED_TRACE(settings.dump());
    const ProgramRun run = sweep(settings);
    expect_refused(run, joined({file_.string() + ": "}, parts));
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_FALSE(fs::exists(sweep_));
  }

  fs::path file_ = directory_ / "sweep settings.json", sweep_ = directory_ / "runs";
};

const json two_seeds = {{"seed", {1, 2}}};

TEST_F(Sweep, WritesPointsThatTrainRuns) {
  const ProgramRun written = sweep(settings_of({{"lr", {1e-3, 1e-2}}, {"seed", {1, 2}}}), {"--threads", "3"});
  ASSERT_EQ(written.exit_code, 0) << written.errors;
  EXPECT_EQ(written.output, "points   4 in " + (sweep_ / "points").string() + "\nsubmit   sbatch " +
                                (sweep_ / "sweep.sbatch").string() + "\ntable    mylos sweep " + sweep_.string() +
                                "\n");
  const std::string script = read_file(sweep_ / "sweep.sbatch");
  for (const char* line :
       {"#SBATCH --array=0-3\n", "#SBATCH --cpus-per-task=3\n", "#SBATCH --time=02:00:00\n", "\nmylos_requeue "}) {
    EXPECT_THAT(script, HasSubstr(line));
  }
  EXPECT_THAT(script, HasSubstr("--output=" + (sweep_ / "logs/%a.out").string() + "\n"));
  EXPECT_THAT(script, Not(HasSubstr("PRECISION")));
  for (const char* name : {"000-learning-rate=0.001,seed=1", "001-learning-rate=0.001,seed=2",
                           "002-learning-rate=0.01,seed=1", "003-learning-rate=0.01,seed=2"}) {
    const ProgramRun run = train_point(name);
    ASSERT_EQ(run.exit_code, 0) << run.errors;
  }
  const json run = read_json(sweep_ / "points/002-learning-rate=0.01,seed=1/run.json");
  EXPECT_EQ(run["learning-rate"], 0.01);
  EXPECT_EQ(run["seed"], 1);
  EXPECT_EQ(run["eval-every"], 3);
}

/// The best point comes first, a killed run is named, and a run that goes on ends as one that was not killed.
TEST_F(Sweep, TheTableNamesWhatIsNotFinished) {
  json settings = settings_of({{{"seed", 1}, {"lr", 1e-2}}, {{"seed", 2}}, {{"seed", 3}}});
  settings["settings"].update({{"best-by", "f1"}, {"steps", 60}, {"eval_every", 30}, {"checkpoint-every", 20}});
  ASSERT_EQ(sweep(settings).exit_code, 0);
  ASSERT_EQ(train_point("000-learning-rate=0.01,seed=1").exit_code, 0);
  const fs::path run = sweep_ / "points/001-seed=2";
  {
    const FileFaults slow("fsync:60s:step-000060");
    RunningProgram program({"train", "--config", run.string() + ".json"});
    ASSERT_TRUE(wait_until([&] { return fs::exists(run / "checkpoints/step-000040.h5"); }));
    program.send(SIGKILL);
    program.wait();
  }
  ProgramRun shown = table();
  EXPECT_EQ(shown.exit_code, 1);
  EXPECT_THAT(shown.errors, HasSubstr("1 of 3 points are finished; once no task is left, submit the array again for "
                                      "the others: sbatch " +
                                      (sweep_ / "sweep.sbatch").string()));
  EXPECT_THAT(shown.output, testing::ContainsRegex("\n001 .* at step [0-9]+ of 60\n002 .* - not begun\n$"));
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const char* name : {"run.json", "metrics.jsonl"}) fs::last_write_time(run / name, old);
  EXPECT_THAT(table().output, HasSubstr(" stopped or hangs at step "));
  ASSERT_EQ(train_point("001-seed=2").exit_code, 0);
  ASSERT_EQ(train_point("002-seed=3").exit_code, 0);
  shown = table();
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_EQ(shown.errors, "");
  const json lines = read_json(sweep_ / "table.json");
  ASSERT_EQ(lines.size(), 3u);
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) EXPECT_GE(lines[i]["f1"], lines[i + 1]["f1"]);
  for (const json& line : lines) {
    const json results = read_json(sweep_ / "points" / std::string(line["name"]) / "results.json");
    EXPECT_EQ(line["f1"], results["f1"]) << line;
    EXPECT_EQ(line["state"], "finished");
  }
  EXPECT_TRUE(
      read_file(sweep_ / "table.md").starts_with("| point | learning-rate | seed | Validation loss | exact | F1 |"));
  EXPECT_TRUE(read_file(sweep_ / "table.csv").starts_with("point,learning-rate,seed,Validation loss,exact,F1,"));
}

TEST_F(Sweep, TakesMorePointsAndKeepsLinesOfTheScript) {
  ASSERT_EQ(sweep(settings_of(two_seeds)).exit_code, 0);
  const fs::path script = sweep_ / "sweep.sbatch";
  std::string edited = read_file(script);
  edited.replace(edited.find("0-1"), 3, "0-1%2\n#SBATCH --account=lab");
  write_file(script, edited);
  const ProgramRun more = sweep(settings_of({{"seed", {5, 1, 2}}}), {"--nodes", "2", "--gpus", "2"});
  ASSERT_EQ(more.exit_code, 0) << more.errors;
  EXPECT_THAT(more.errors, HasSubstr("is kept, but for the array's range"));
  EXPECT_THAT(read_file(script), HasSubstr("#SBATCH --array=0-2%2\n#SBATCH --account=lab\n"));
  for (const char* name : {"000-seed=1", "001-seed=2", "002-seed=5"}) {
    EXPECT_TRUE(fs::exists(sweep_ / "points" / (std::string(name) + ".json"))) << name;
  }
  ASSERT_EQ(sweep(settings_of({{"seed", {5, 1, 2}}}), {"--nodes", "2", "--gpus", "4", "--overwrite"}).exit_code, 0);
  EXPECT_THAT(read_file(script), HasSubstr("#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n"));
  EXPECT_THAT(read_file(script), Not(HasSubstr("account=")));
  json other = settings_of({{"seed", {5, 1, 2}}});
  other["settings"]["steps"] = 7;
  expect_refused(sweep(other),
                 {sweep_.string() + ": holds a sweep with other settings: steps 6, now 7; choose another"});
  expect_refused(sweep(settings_of({{"seed", {1, 2}}})), {"holds a sweep with another point, 002-seed=5; "});
  EXPECT_EQ(read_json(sweep_ / "sweep.json")["points"].size(), 3u);
}

TEST_F(Sweep, OfPbsIsSubmittedWithItsRange) {
  const ProgramRun written = sweep(settings_of(two_seeds), {"--job", "pbs", "--walltime", "1:30:00"});
  ASSERT_EQ(written.exit_code, 0) << written.errors;
  EXPECT_THAT(written.output, HasSubstr("submit   qsub -J 0-1 " + (sweep_ / "sweep.pbs").string() + "\n"));
  const std::string script = read_file(sweep_ / "sweep.pbs");
  EXPECT_THAT(script, HasSubstr("SCRIPT=${SCRIPT:-" + (sweep_ / "sweep.pbs").string() + "}\n"));
  EXPECT_THAT(script, HasSubstr("#PBS -l walltime=01:30:00\n"));
  EXPECT_THAT(script, Not(HasSubstr("#PBS -J"))) << "a task that submits the script again is not an array";
}

TEST_F(Sweep, BadSettingsAreNamed) {
  expect_refused(sweep(std::string("{")), {file_.string() + ": not JSON"});
  expect_refused(json::array(), {"expected {\"settings\": "});
  expect_refused({{"settings", json::object()}}, {"expected {\"settings\": "});
  json settings = settings_of(two_seeds);
  settings["sweeps"] = 3;
  expect_refused(settings, {"unknown key \"sweeps\""});
  expect_refused(settings_of({{"seed", json::array()}}), {"sweep.seed: expected a list "});
  expect_refused(settings_of({{"seed", {{1}}}}), {"sweep.seed: expected a list "});
  expect_refused(settings_of({{"seed", 1}}), {"sweep.seed: expected a list "});
  expect_refused(settings_of({{{"seed", {1, 2}}}}), {"sweep: expected {option: [value, value]}, or a list of "});
  expect_refused(settings_of({{"seed", {1}}}), {"at least two points"});
  json seeds = json::array();
  for (int i = 0; i < 1001; ++i) seeds.push_back(i);
  expect_refused(settings_of({{"seed", seeds}}), {"sweep: more than 1000 points"});
  expect_refused(settings_of({{"seed", {1, "x"}}}), {"point 1 (--seed=x): --seed x: expected a whole number "});
  expect_refused(settings_of({{"seeds", {1, 2}}}),
                 {"point 0 (--seeds=1): train does not have --seeds; did you mean --seed?"});
  expect_refused(settings_of({{"help", {1, 2}}}), {"help: the sweep and its job script set it"});
  expect_refused(settings_of({{"learning_rate_min", {1}}, {"schedule", {"linear", "constant"}}}),
                 {"point 0 (", "--learning-rate-min 1: expected at most --learning-rate, 3e-05"});
  settings = settings_of({{"seed", {1, 2}}, {"train_file", {"a"}}});
  expect_refused(settings, {"train_file: another key sets this option, too"});
  settings["settings"].erase("train");
  expect_refused(settings, {"--train a: there is no such file or directory"});
  settings = settings_of(two_seeds);
  settings["settings"]["max_seq_length"] = 50;
  expect_refused(settings, {"max_seq_length: another key sets this option, too"});
  settings = settings_of(two_seeds);
  settings["settings"]["lr"] = {1, 2};
  expect_refused(settings, {"settings: expected {option: value}, without lists"});
  settings = settings_of(two_seeds);
  settings["settings"]["model"] = "no-such-model";
  expect_refused(settings, {"no model \"no-such-model\""});
}

TEST_F(Sweep, ClashingDirectoriesAreRefused) {
  expect_refused(settings_of({{"seed", {1, 2, 1}}}),
                 {"points 0 and 2 are equal, so that both would train in ", "000-seed=1"});
  expect_refused(settings_of({{{"seed", 1}}, {{"seed", 1}, {"lr", 3e-5}}}), {"points 0 and 1 are equal"});
  fs::create_directories(sweep_);
  write_file(sweep_ / "thesis.tex", "x");
  expect_refused(sweep(settings_of(two_seeds)),
                 {"--output " + sweep_.string() + ": contains thesis.tex, which no sweep "});
  expect_refused(table(), {sweep_.string() + ": contains no sweep.json; give the --output of "});
  write_file(sweep_ / "sweep.json", R"({"points": [{"name": "../x", "varied": {}}]})");
  expect_refused(table(), {"sweep.json: not written by mylos sweep"});
  fs::remove_all(sweep_);
  write_file(sweep_, "x");
  expect_refused(sweep(settings_of(two_seeds)), {"is not a directory"});
}

TEST_F(Sweep, OptionsOfTheSweepAreChecked) {
  write_file(file_, settings_of(two_seeds).dump());
  expect_refused(run_mylos({"sweep", file_}), {"sweep needs --output"});
  expect_refused(run_mylos({"sweep", directory_.path(), "--output", sweep_}), {"is a directory; leave out --output"});
  expect_refused(sweep(settings_of(two_seeds), {"--gpus", "3", "--nodes", "2"}),
                 {"--gpus 3: expected a multiple of --nodes 2"});
  expect_refused(sweep(settings_of(two_seeds), {"--job", "lsf"}), {"--job lsf: expected slurm or pbs"});
  expect_refused(run_mylos({"sweep", directory_ / "none.json", "--output", sweep_}), {"cannot read ", "none.json"});
  EXPECT_FALSE(fs::exists(sweep_));
}

/// The configuration of a point would not have the value of such an option, which would be lost silently.
TEST_F(Sweep, OptionsThatAreNoSettingsOfARunAreRefused) {
  const std::set<std::string> resolved = {"do-train", "do-eval", "dataset"};
  for (const app::Option& option : app::option_table()) {
    const bool is_recorded = option.print || !option.parse || resolved.contains(option.name);  // or a peer's
    if (is_recorded || !option.belongs_to("train")) continue;
    expect_refused(settings_of({{option.name, {"true", "false"}}}),
                   {option.name + ": the sweep and its job script set it"});
  }
}

TEST_F(Sweep, OtherNamesOfSettingsCount) {
  json settings = settings_of({{"batch_size_per_device", {1, 2}}});
  settings["settings"].erase("batch");
  settings["settings"].update(
      {{"gradient_accumulation_steps", 3}, {"save_strategy", "epoch"}, {"bf16", true}, {"logging_steps", 5}});
  const ProgramRun written = sweep(settings);
  ASSERT_EQ(written.exit_code, 0) << written.errors;
  EXPECT_EQ(written.error_lines().size(), 1u) << "the remark of both points, once: " << written.errors;
  const json point = read_json(sweep_ / "points/001-batch-size-per-device=2.json");
  EXPECT_EQ(point["batch-per-rank"], 6);
  EXPECT_FALSE(point.contains("batch"));
  EXPECT_EQ(point["micro-batch"], 2);
  EXPECT_EQ(point["checkpoint-every"], "epoch");
  EXPECT_EQ(point["precision"], "bfloat16");
}

}  // namespace
}  // namespace mylos::tests
