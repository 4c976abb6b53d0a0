#include "app/calibration.hpp"
#include "tests/app/rank_runs.hpp"
#include "tests/support/sanitized.hpp"

#include <gmock/gmock.h>

#include <sstream>

/// mylos plan: what it says beforehand, and what runs then take.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

json planned(Words words) {
  words.insert(words.begin(), "plan");
  words.emplace_back("--json");
  const ProgramRun run = run_mylos(words);
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  return run.exit_code == 0 ? json::parse(run.output) : json();
}

class Plan : public testing::Test {
 protected:
  TemporaryDirectory directory_;
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (directory_ / "cache").string()};
};

TEST_F(Plan, NeedsNoModelFilesForModelsItKnows) {
  const json plan = planned({"--model", "bert-base", "--gpu", "a100-40", "--gpus", "8", "--nodes", "2", "--precision",
                             "bf16", "--batch", "32"});
  EXPECT_EQ(plan["modes"].size(), 5u);
  EXPECT_EQ(plan["modes"][0]["mode"], "replicated");
  // BERT-base has 108.9 million parameters without its pooler: 2 bytes and a master of 4 each.
  EXPECT_EQ(plan["modes"][0]["memory"]["values"], 108'893'186u * 6);
  EXPECT_THAT(plan["recommended"].get<std::string>(), HasSubstr("srun --nodes=2 --ntasks=8 --gpus-per-task=1 mylos"));
}

TEST_F(Plan, OneModeOnly) {
  const json plan = planned({"--model", "bert-large", "--gpu", "h100", "--gpus", "4", "--mode", "zero3"});
  ASSERT_EQ(plan["modes"].size(), 1u);
  EXPECT_EQ(plan["modes"][0]["mode"], "sharded");
  EXPECT_EQ(planned({"--model", "bert-large", "--gpu", "h100", "--gpus", "4", "--mode", "all"})["modes"].size(), 4u);
}

TEST_F(Plan, WhatCannotFitSaysWhatWould) {
  const ProgramRun run = run_mylos(
      {"plan", "--model", "bert-large", "--gpu", "v100-16", "--gpus", "2", "--memory", "5.2", "--batch", "64"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("replicated: memory:"));
  EXPECT_THAT(run.output, HasSubstr("--recompute layer"));
  const ProgramRun job =
      run_mylos({"plan", "--model", "bert-large", "--gpu", "v100-16", "--memory", "4", "--job", "slurm"});
  EXPECT_EQ(job.exit_code, 1);
  EXPECT_EQ(job.output, "");
}

TEST_F(Plan, BadInput) {
  const auto complaint = [](Words words) {
    words.insert(words.begin(), "plan");
    const ProgramRun run = run_mylos(words);
    EXPECT_NE(run.exit_code, 0);
    return run.errors;
  };
  EXPECT_THAT(complaint({"--gpu", "h100"}), HasSubstr("plan needs --model"));
  EXPECT_THAT(complaint({"--model", "bert-base"}), HasSubstr("plan needs --gpu"));
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "b300"}),
              HasSubstr("expected cpu, v100-16, v100-32, a100-40"));
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "h100", "--gpus", "3", "--nodes", "2"}),
              HasSubstr("not the same number on each of 2 nodes"));
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "v100-32", "--precision", "bfloat16"}),
              HasSubstr("use --precision half"));
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "h100", "--max-length", "1024"}),
              HasSubstr("bert-base has 512 positions"));
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "h100", "--job", "lsf"}), HasSubstr("slurm or pbs"));
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "h100", "--job", "pbs", "--json"}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "h100", "--bench", "/nowhere.json"}),
              HasSubstr("/nowhere.json"));
  const fs::path other = directory_ / "other.json";
  write_file(other, "{}");
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "h100", "--bench", other}),
              HasSubstr("it is what `mylos bench step --json` prints"));
  EXPECT_THAT(run_mylos({"train", "--mode", "all", "--model", "m", "--train", "t", "--output", "o"}).errors,
              HasSubstr("mylos: error:"));
}

TEST_F(Plan, TakesWhatBenchStepMeasured) {
  const fs::path file = directory_ / "bench.json";
  const app::Calibration measured{.device = "NVIDIA A100-SXM4-40GB",
                                  .host = false,
                                  .precision = Precision::bfloat16,
                                  .layers = 12,
                                  .hidden = 768,
                                  .flops = 2e14,
                                  .bandwidth = 1e12};
  write_file(file, json({{"calibration", app::to_json(measured)}}).dump());
  const Words words = {"--model", "bert-base", "--gpu", "a100-40", "--precision",
                       "bf16",    "--batch",   "8",     "--bench", file};
  const json plan = planned(words);
  EXPECT_THAT(plan["rate"].get<std::string>(), HasSubstr("measured by bench step with 12 layers of 768"));
  // 6 x T x (85 M weights, and attention's 2 L H 384) operations.
  const double flops = 6.0 * 8 * 384 * (12.0 * 12 * 768 * 768 + 2 * 768 + 2.0 * 12 * 768 * 384);
  EXPECT_NEAR(plan["modes"][0]["compute_seconds"].get<double>(), flops / 2e14, 1e-9 * flops / 2e14);
  EXPECT_THAT(
      run_mylos({"plan", "--model", "bert-base", "--gpu", "h200", "--precision", "bf16", "--bench", file}).errors,
      HasSubstr("it is not of --gpu h200 in bfloat16"));
}

class JobScript : public Plan, public testing::WithParamInterface<std::string> {};

TEST_P(JobScript, IsAShellScriptWithTheRecommendedRun) {
  const ProgramRun run = run_mylos({"plan", "--model", "bert-base", "--gpu", "a100-80", "--gpus", "8", "--nodes", "2",
                                    "--threads", "8", "--job", GetParam()});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const fs::path script = directory_ / "job.sh";
  write_file(script, run.output);
  EXPECT_EQ(RunningProgram({"-n", script.string()}, "", {}, "/bin/bash").wait().exit_code, 0);
  EXPECT_THAT(run.output, HasSubstr("mylos train --model bert-base"));
  EXPECT_THAT(run.output, HasSubstr(GetParam() == "slurm" ? "#SBATCH --ntasks-per-node=4"
                                                          : "select=2:ncpus=32:mpiprocs=4:ngpus=4"));
}

INSTANTIATE_TEST_SUITE_P(For, JobScript, testing::Values("slurm", "pbs"), [](const auto& of) { return of.param; });

struct PlannedSetting {
  std::string mode, recompute;
};

/// Two ranks, so that every mode splits what it splits.
class PlannedMemory : public RankRuns, public testing::WithParamInterface<PlannedSetting> {};

TEST_P(PlannedMemory, IsWithinFivePercentOfTheMeasured) {
  if (heap_is_sanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  const auto& [mode, recompute] = GetParam();
  const fs::path model = directory_ / "larger", questions = directory_ / "long.json";
  write_tiny_model(model, {.positions = 384, .hidden = 384, .layers = 6, .feed_forward = 1536});
  write_file(questions, long_questions(32, 384));
  const Words same = {"--model", model, "--batch",      "32",  "--steps",     "1",
                      "--mode",  mode,  "--max-length", "384", "--recompute", recompute};
  Words plan = {"--gpu", "cpu", "--gpus", "2", "--threads", "1", "--data", questions};
  Words train = {"train", "--train", questions, "--output", run_, "--gemm", default_gemm_provider()};
  for (Words* words : {&plan, &train}) {
    words->insert(words->end(), same.begin(), same.end());
    if (mode == "hybrid") words->insert(words->end(), {"--shard-size", "2"});
  }
  const double said = planned(plan)["modes"][0]["memory"]["peak"].get<double>();
  const ProgramRun run = run_on(2, train);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  double most = 0.0;
  std::istringstream lines(read_file(run_ / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) most = std::max(most, json::parse(line).value("memory", 0.0));
  EXPECT_NEAR(said / most, 1.0, 0.05) << most / (1 << 20) << " MiB measured, " << said / (1 << 20) << " MiB planned";
}

INSTANTIATE_TEST_SUITE_P(Of, PlannedMemory,
                         testing::Values(PlannedSetting{"replicated", "none"},
                                         PlannedSetting{"replicated", "attention"},
                                         PlannedSetting{"replicated", "layer"},
                                         PlannedSetting{"sharded-optimizer", "none"},
                                         PlannedSetting{"sharded-gradients", "none"}, PlannedSetting{"sharded", "none"},
                                         PlannedSetting{"sharded", "attention"}, PlannedSetting{"sharded", "layer"},
                                         PlannedSetting{"hybrid", "none"}),
                         [](const auto& of) {
                           std::string name = of.param.mode + "_" + of.param.recompute;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace mylos::tests
