#include "app/bench/calibration.hpp"
#include "tasks/interface/planned_run.hpp"
#include "tests/app/rank_runs.hpp"
#include "tests/support/sanitized.hpp"

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <sstream>

/// Compares the predictions of mylos plan with actual runs.
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
  // BERT-base has 108.9 million parameters without its pooler, with a 2-byte value and a 4-byte master weight each.
  EXPECT_EQ(plan["modes"][0]["memory"]["values"], 108'893'186u * 6);
  EXPECT_GE(plan["modes"][0]["host_images"].get<std::size_t>(), 108'893'186u * 4) << "all gradients, over MPI";
  EXPECT_THAT(plan["recommended"].get<std::string>(),
              HasSubstr("srun --mpi=pmix --nodes=2 --ntasks-per-node=4 --cpus-per-task=8 --gpus-per-node=4 mylos "
                        "train --dataset squad --do-train --output run --model bert-base-uncased "));
}

/// The default batch is far too small for two nodes, and the plan recommends one that is large enough.
TEST_F(Plan, SaysWhichBatchIsTooSmallForTheNetwork) {
  const Words words = {"--model", "bert-base", "--gpu", "a100-40",     "--gpus",
                       "8",       "--nodes",   "2",     "--precision", "bf16"};
  const auto note = [&](const Words& more) {
    Words line = words;
    line.insert(line.begin(), "plan");
    line.insert(line.end(), more.begin(), more.end());
    const std::string output = run_mylos(line).output;
    const std::size_t begin = output.find("\nbatch ");
    return begin == std::string::npos ? "" : output.substr(begin, output.find('\n', begin + 1) - begin);
  };
  const std::string said = note({});
  EXPECT_THAT(said, HasSubstr(": 12 sequences on 8 GPUs: the network takes "));
  Words replicated = joined(words, {"--mode", "replicated"});
  const json plan = planned(replicated)["modes"][0];
  const std::size_t batch = plan["efficient_batch"];
  EXPECT_GT(batch, 12u);
  EXPECT_EQ(batch % 8, 0u);
  EXPECT_THAT(note({"--mode", "replicated"}), HasSubstr("; a batch of " + std::to_string(batch) + " would reach 90 %"));
  const auto busy = [&](std::size_t size) {
    Words asked = joined(replicated, {"--batch", std::to_string(size)});
    return planned(asked)["modes"][0]["busy"].get<double>();
  };
  EXPECT_GE(busy(batch), 0.899);
  EXPECT_LT(busy(batch - 8), 0.9);
  EXPECT_EQ(note({"--batch", std::to_string(batch)}), "");
}

TEST_F(Plan, SaysThatAKindWasNeverCompared) {
  const auto machine = [&](const char* kind) {
    return run_mylos({"plan", "--model", "bert-base", "--gpu", kind}).output;
  };
  for (const char* kind : {"b200", "mi250x"}) {
    EXPECT_THAT(machine(kind), HasSubstr("; from its data sheet, never compared with a measurement\n"));
  }
  EXPECT_THAT(machine("a100_40gb"), testing::Not(HasSubstr("never compared")));
}

TEST_F(Plan, OneModeOnly) {
  const json plan = planned({"--model", "bert-large", "--gpu", "h100", "--gpus", "4", "--mode", "zero3"});
  ASSERT_EQ(plan["modes"].size(), 1u);
  EXPECT_EQ(plan["modes"][0]["mode"], "sharded");
  EXPECT_EQ(planned({"--model", "bert-large", "--gpu", "h100", "--gpus", "4", "--mode", "all"})["modes"].size(), 4u);
}

TEST_F(Plan, WhatCannotFitSaysWhatWould) {
  const ProgramRun run = run_mylos(
      {"plan", "--model", "bert-large", "--gpu", "v100-16", "--gpus", "2", "--memory", "4.5", "--batch", "64"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr("replicated: memory:"));
  EXPECT_THAT(run.output, HasSubstr("--recompute layer"));
  const ProgramRun job =
      run_mylos({"plan", "--model", "bert-large", "--gpu", "v100-16", "--memory", "3", "--job", "slurm"});
  EXPECT_EQ(job.exit_code, 1);
  EXPECT_EQ(job.output, "");
}

TEST_F(Plan, WhatIsSaidToFitFits) {
  const Words words = {"plan", "--model", "bert-large", "--memory", "6", "--precision", "float", "--batch", "1"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run_mylos(more);
  };
  const ProgramRun run = with({"--gpu", "v100-16"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.output, HasSubstr(" are free; it fits on 2 GPUs with --mode sharded-gradients, or on v100-32\n"));
  EXPECT_EQ(with({"--gpu", "v100-16", "--gpus", "2", "--mode", "sharded-gradients"}).exit_code, 0);
}

TEST_F(Plan, NamesAreThoseThatFetchGets) {
  const auto line = [](const char* model) {
    return planned({"--model", model, "--gpu", "h100"})["recommended"].get<std::string>();
  };
  EXPECT_THAT(line("bert-large"), HasSubstr(" --model bert-large-uncased "));
  EXPECT_THAT(line("bert-base-uncased"), HasSubstr(" --model bert-base-uncased "));
  EXPECT_THAT(line("minilm"), HasSubstr(" --model minilm "));
  const fs::path file = directory_ / "questions.json";
  write_file(file, "{}");
  const std::vector<std::string> errors =
      run_mylos({"plan", "--model", "bert-base", "--gpu", "h100", "--data", file}).error_lines();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0], "mylos: error: --data " + file.string() +
                           ": only the sizes of bert-base are built in, and tokenizing data needs its directory; get "
                           "it with: mylos fetch bert-base-uncased; or leave out --data");
}

TEST_F(Plan, NotesSayWhatWasMadeToFitAndWhatExceedsAll) {
  const Words words = {"plan", "--model", "bert-large", "--gpu", "a100-40", "--gpus", "4", "--batch", "512"};
  const ProgramRun run = run_mylos(words);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output,
              HasSubstr("replicated: planned with a micro-batch of 64 sequences, because the 128 of a rank's "
                        "step do not fit together\n"));
  const ProgramRun little =
      run_mylos({"plan", "--model", "bert-large", "--gpu", "h100", "--gpus", "4", "--batch", "4"});
  EXPECT_THAT(little.output, HasSubstr("   exchange  host, MPI\nreplicated "));
  EXPECT_THAT(
      little.output,
      HasSubstr("efficiencies above 100 %: each rank updates only its slice of the parameters, one GPU all of them\n"));
  EXPECT_THAT(little.output, testing::Not(HasSubstr("planned with a micro-batch")));
  const json all = planned({words.begin() + 1, words.end()});
  EXPECT_EQ(all["modes"][0]["asked_micro_batch"], 128);
  const ProgramRun small = run_mylos({"plan", "--model", "minilm", "--gpu", "h200", "--batch", "8"});
  EXPECT_THAT(small.output, testing::Not(HasSubstr("planned with a micro-batch")));
  EXPECT_THAT(small.output, testing::Not(HasSubstr("above 100 %")));
}

TEST_F(Plan, ProcessorsAreDividedAmongRanks) {
  const EnvironmentVariable none("OMP_NUM_THREADS", "");
  const json alone = planned({"--model", "minilm", "--gpu", "cpu", "--batch", "2"});
  const json crowd = planned({"--model", "minilm", "--gpu", "cpu", "--gpus", "4096", "--memory", "4", "--batch", "2"});
  EXPECT_EQ(crowd["modes"][0]["host_images"], 0);
  EXPECT_THAT(crowd["recommended"].get<std::string>(), HasSubstr(" --cpus-per-task=1 "));
  EXPECT_EQ(alone["modes"][0]["exposed_seconds"], 0.0);
  EXPECT_THAT(
      planned({"--model", "minilm", "--gpu", "cpu", "--gpus", "4", "--nodes", "2", "--threads", "3"})["recommended"]
          .get<std::string>(),
      HasSubstr(" --ntasks-per-node=2 --cpus-per-task=3 mylos"));
}

TEST_F(Plan, ABatchOfARankIsThatOfEach) {
  const json plan = planned({"--model", "minilm", "--gpu", "h100", "--gpus", "4", "--batch-per-rank", "8",
                             "--gradient-accumulation-steps", "2"});
  EXPECT_EQ(plan["batch"], 64);
  EXPECT_THAT(plan["recommended"].get<std::string>(), HasSubstr(" --batch 64 --gradient-accumulation-steps 2 "));
}

TEST_F(Plan, ABrokenFileOfTheCacheIsNone) {
  for (const char* content : {R"({"calibration": {"host": "x", "device": "d", "threads": 1, "precision": "float"}})",
                              R"({"calibration": []})", "[1]", "x"}) {
    write_file(directory_ / "cache/mylos/bench/step-1.json", content);
    EXPECT_EQ(run_mylos({"plan", "--model", "minilm", "--gpu", "cpu"}).exit_code, 0) << content;
  }
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
              HasSubstr("expected a multiple of --nodes 2"));
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "v100-32", "--precision", "bfloat16"}),
              HasSubstr("use --precision half"));
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "h100", "--max-length", "1024"}),
              HasSubstr("--max-length 1024: expected at most 512, the positions that bert-base has"));
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "h100", "--job", "lsf"}), HasSubstr("slurm or pbs"));
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "h100", "--job", "pbs", "--json"}),
              HasSubstr("exclude each other"));
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "h100", "--bench", "/nowhere.json"}),
              HasSubstr("/nowhere.json"));
  const fs::path other = directory_ / "other.json";
  write_file(other, "{}");
  EXPECT_THAT(complaint({"--model", "bert-base", "--gpu", "h100", "--bench", other}),
              HasSubstr("expected the output of `mylos bench step --json`"));
  EXPECT_THAT(run_mylos({"train", "--mode", "all", "--model", "m", "--train", "t", "--output", "o"}).errors,
              HasSubstr("mylos: error:"));
}

TEST_F(Plan, TakesWhatBenchStepMeasured) {
  const fs::path file = directory_ / "bench.json";
  const app::Calibration measured{.device = "NVIDIA A100-SXM4-40GB",
                                  .host = false,
                                  .precision = Precision::bfloat16,
                                  .model = {108'893'186, 6.0 * (12 * (12.0 * 768 * 768 + 2 * 768) + 2 * 768)},
                                  .flops = 2e14,
                                  .bandwidth = 1e12};
  write_file(file, json({{"calibration", app::to_json(measured)}}).dump());
  const Words words = {"--model", "bert-base", "--gpu", "a100-40", "--precision",
                       "bf16",    "--batch",   "8",     "--bench", file};
  const json plan = planned(words);
  EXPECT_THAT(plan["rate"].get<std::string>(),
              HasSubstr("measured by bench step on a model of 108.9 M parameters: 200 TFLOP/s"));
  // 6 x T x (85 M weights, and attention's 2 L H 384) operations.
  const double flops = 6.0 * 8 * 384 * (12.0 * 12 * 768 * 768 + 2 * 768 + 2.0 * 12 * 768 * 384);
  EXPECT_NEAR(plan["modes"][0]["compute_seconds"].get<double>(), flops / 2e14, 1e-9 * flops / 2e14);
  EXPECT_THAT(
      run_mylos({"plan", "--model", "bert-base", "--gpu", "h200", "--precision", "bf16", "--bench", file}).errors,
      HasSubstr("not measured on --gpu h200 in bfloat16"));
}

/// The default of --max-length is reduced to fit the model, and the recommended command contains it.
TEST_F(Plan, TheRecommendedLineFitsAModelOfFewPositions) {
  write_tiny_model(directory_ / "model");
  const json plan = planned({"--model", directory_ / "model", "--gpu", "h100"});
  EXPECT_THAT(plan["recommended"].get<std::string>(), HasSubstr(" --max-length 64 "));
  EXPECT_THAT(run_mylos({"plan", "--model", directory_ / "model", "--gpu", "h100", "--job", "slurm"}).output,
              HasSubstr("--max-length 64"));
}

/// A run of a tiny model in a directory whose name needs quoting in a shell.
class PlannedRun : public TinyRun {
 protected:
  void SetUp() override {
    TinyRun::SetUp();
    fs::create_directories(home_);
    fs::rename(model_, home_ / "model");
    fs::rename(train_, home_ / "train.json");
  }
  Words words(const Words& more) const {
    Words all = {"--model", home_ / "model", "--data", home_ / "train.json", "--gpu", "cpu", "--threads", "1"};
    const Words settings = {
        "--steps",      "2", "--max-length",   "60",  "--doc-stride",       "17", "--batch",     "4",
        "--bucket-mib", "2", "--micro-tokens", "120", "--checkpoint-every", "1",  "--recompute", "layer"};
    all.insert(all.end(), settings.begin(), settings.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  /// Runs the script with `programs` and the program's directory in its PATH.
  ProgramRun submit(const std::string& script, const Words& environment) const {
    write_file(directory_ / "job.sh", script);
    Words all = joined(joined({"PATH=" + programs_.string() + ":/usr/bin:/bin:" + program().parent_path().string(),
                               "SLURM_JOB_NAME=mylos", "PBS_JOBNAME=mylos", "SLURM_CPUS_PER_TASK=1", "SLURM_JOB_ID=1",
                               "SCRIPT=job.sh", "PBS_O_WORKDIR=" + directory_.path().string()},
                              environment),
                       {"/bin/bash", (directory_ / "job.sh").string()});
    return RunningProgram(all, "", {}, "/usr/bin/env").wait();
  }
  void add_program(const char* name, const std::string& body) const {
    write_file(programs_ / name, "#!/bin/sh\n" + body + "\n");
    fs::permissions(programs_ / name, fs::perms::owner_all);
  }

  fs::path home_ = directory_ / "it's $HOME {here}", programs_ = directory_ / "programs";
};

TEST_F(PlannedRun, TheRecommendedLineIsTheRun) {
  std::string line = planned(words({}))["recommended"];
  const std::string launcher = "srun --mpi=pmix --nodes=1 --ntasks-per-node=1 --cpus-per-task=1 mylos ";
  ASSERT_TRUE(line.starts_with(launcher)) << line;
  line = "cd '" + directory_.path().string() + "' && exec '" + program().string() + "' " + line.substr(launcher.size());
  const ProgramRun run = RunningProgram({"-c", line}, "", {}, "/bin/sh").wait();
  ASSERT_EQ(run.exit_code, 0) << line << run.errors;
  const json recorded = json::parse(read_file(run_ / "run.json"));
  EXPECT_EQ(recorded["train"], (home_ / "train.json").string());
  EXPECT_EQ(recorded["model"], (home_ / "model").string());
  const std::map<std::string, json> given = {{"steps", 2},          {"max-length", 60},      {"doc-stride", 17},
                                             {"batch", 4},          {"bucket-mib", 2},       {"micro-tokens", 120},
                                             {"micro-batch", {}},   {"checkpoint-every", 1}, {"recompute", "layer"},
                                             {"mode", "replicated"}};
  for (const auto& [name, value] : given) EXPECT_EQ(recorded[name], value) << name;
  EXPECT_EQ(recorded["resolved"].value("attention", ""), "portable");
}

class JobScript : public PlannedRun, public testing::WithParamInterface<std::string> {};

TEST_P(JobScript, StartsThePlannedRun) {
  const bool is_slurm = GetParam() == "slurm";
  const ProgramRun plan = run_mylos([&] {
    Words all = words({"--job", GetParam(), "--gpus", "4", "--nodes", "2", "--mode", "sharded"});
    all.insert(all.begin(), "plan");
    return all;
  }());
  ASSERT_EQ(plan.exit_code, 0) << plan.errors;
  for (const char* line :
       is_slurm ? std::array{"#SBATCH --nodes=2\n", "#SBATCH --ntasks-per-node=2\n", "#SBATCH --cpus-per-task=1\n",
                             "#SBATCH --gpus-per-node=0\n"}
                : std::array{"#PBS -l select=2:ncpus=2:mpiprocs=2\n", "#PBS -l walltime=00:20:00\n", "", ""}) {
    EXPECT_THAT(plan.output, HasSubstr(line));
  }
  // Prints the launched command, one word per line, through a launcher that passes it on.
  add_program("mylos", "for word; do echo \"$word\"; done; exit ${ENDS_WITH:-0}");
  add_program("launcher", "exec \"$@\"");
  const ProgramRun run = submit(plan.output, {"LAUNCHER=launcher"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.output, testing::StartsWith("train\n--model\n" + (home_ / "model").string() + "\n--train\n" +
                                              (home_ / "train.json").string() + "\n--output\nrun\n"));
  for (const char* option : {"--precision\nfloat\n", "--mode\nsharded\n", "--checkpoint-every\n1\n",
                             "--doc-stride\n17\n", "--bucket-mib\n2\n", "--micro-tokens\n120\n"}) {
    EXPECT_THAT(run.output, HasSubstr(option));
  }
  const ProgramRun stuck = submit(plan.output, {"LAUNCHER=launcher", "ENDS_WITH=85"});
  EXPECT_EQ(stuck.exit_code, 85) << "no step further";
  EXPECT_THAT(stuck.errors, HasSubstr("no step further than "));
}

TEST_P(JobScript, AsksForWhatThePlanWasNotTold) {
  const ProgramRun plan = run_mylos(
      {"plan", "--model", "bert-base", "--gpu", "a100-80", "--gpus", "8", "--nodes", "2", "--job", GetParam()});
  ASSERT_EQ(plan.exit_code, 0) << plan.errors;
  EXPECT_THAT(plan.output, HasSubstr(GetParam() == "slurm" ? "#SBATCH --gpus-per-node=4\n#SBATCH --cpus-per-task=8\n"
                                                           : "select=2:ncpus=32:mpiprocs=4:ngpus=4\n"));
  const ProgramRun run = submit(plan.output, {"LAUNCHER=launcher"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.errors, testing::StartsWith("mylos: TRAIN is not set; submit with "));
  add_program("mylos", "echo \"$@\"");
  add_program("launcher", "exec \"$@\"");
  const std::string started = submit(plan.output, {"LAUNCHER=launcher", "TRAIN=t.h5"}).output;
  EXPECT_THAT(started, HasSubstr("train --model bert-base-uncased --train t.h5 --output run"));
}

INSTANTIATE_TEST_SUITE_P(For, JobScript, testing::Values("slurm", "pbs"), [](const auto& of) { return of.param; });

struct PlannedSetting {
  std::string strategy, recompute;
};

/// Two ranks, so that every mode shards something.
class PlannedMemory : public RankRuns, public testing::WithParamInterface<PlannedSetting> {};

TEST_P(PlannedMemory, IsAtMostEightPercentAboveTheMeasured) {
  if (heap_is_sanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  const auto& [strategy, recompute] = GetParam();
  const fs::path model = directory_ / "larger", questions = directory_ / "long.json";
  write_tiny_model(model, {.positions = 384, .hidden = 384, .layers = 6, .feed_forward = 1536});
  // With recomputed layers, the activations of a smaller batch are too small beside the program's own memory.
  const std::size_t batch = recompute == "layer" ? 24 : 12;
  write_file(questions, long_questions(batch, 384));
  const Words same = {"--model", model,          "--batch", std::to_string(batch), "--steps", "1", "--mode",
                      strategy,  "--max-length", "384",     "--recompute",         recompute};
  Words plan = {"--gpu", "cpu", "--gpus", "2", "--threads", "1", "--data", questions};
  Words train = {"train", "--train", questions, "--output", run_, "--gemm", default_gemm_provider()};
  for (Words* words : {&plan, &train}) {
    words->insert(words->end(), same.begin(), same.end());
    if (strategy == "hybrid") words->insert(words->end(), {"--shard-size", "2"});
  }
  const json said = planned(plan)["modes"][0];
  const ProgramRun run = run_on(2, train);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  double most = 0.0;
  for (const json& step : metrics_of(run_, "loss")) most = std::max(most, step.value("memory", 0.0));
  const double ratio = said["memory"]["peak"].get<double>() / most;
  EXPECT_GE(ratio, 0.95) << most << " bytes measured: " << said;
  EXPECT_LE(ratio, 1.08) << most << " bytes measured: " << said;
}

INSTANTIATE_TEST_SUITE_P(Of, PlannedMemory,
                         testing::Values(PlannedSetting{"replicated", "layer"},
                                         PlannedSetting{"sharded-optimizer", "none"},
                                         PlannedSetting{"sharded-gradients", "none"},
                                         PlannedSetting{"sharded", "attention"}, PlannedSetting{"hybrid", "none"}),
                         [](const auto& of) {
                           std::string name = of.param.strategy + "_" + of.param.recompute;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

struct SentSetting {
  std::string strategy, communication_precision, micro_batches = "1";
};

class PlannedBytes : public RankRuns, public testing::WithParamInterface<SentSetting> {};

TEST_P(PlannedBytes, AreThoseThatARankSends) {
  const auto& [strategy, communication_precision, micro_batches] = GetParam();
  const bool is_hybrid = strategy == "hybrid";
  write_tiny_model(model_, {.hidden = 128, .layers = 6, .feed_forward = 512});
  const Words same = {"--steps",      "8",  "--batch", "8",      "--max-length", "60",
                      "--doc-stride", "20", "--mode",  strategy, "--precision",  "bfloat16"};
  Words plan = {"--gpu", "cpu", "--gpus", is_hybrid ? "4" : "2", "--nodes", is_hybrid ? "2" : "1", "--data", train_};
  Words train = {"train", "--train", train_, "--model", model_, "--output", run_, "--gemm", default_gemm_provider()};
  for (Words* words : {&plan, &train}) {
    words->insert(words->end(), same.begin(), same.end());
    words->insert(words->end(), {"--communication-precision", communication_precision});
    if (micro_batches != "1") words->insert(words->end(), {"--gradient-accumulation-steps", micro_batches});
    if (is_hybrid) words->insert(words->end(), {"--shard-size", "2"});
  }
  plan.insert(plan.end(), {"--model", model_});
  const ProgramRun run = run_on(is_hybrid ? 4 : 2, train);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const std::vector<json> taken = metrics_of(run_, "loss");
  ASSERT_EQ(taken.size(), 8u);
  // Part of a step's communication occurs in the step before, so take the mean of all steps but the first and the last.
  double mean = 0.0;
  for (std::size_t i = 1; i + 1 < taken.size(); ++i) mean += taken[i]["sent"].get<double>() / 6;
  EXPECT_NEAR(planned(plan)["modes"][0]["sent_bytes"].get<double>() / mean, 1.0, 0.08) << mean;
}

INSTANTIATE_TEST_SUITE_P(In, PlannedBytes,
                         testing::Values(SentSetting{"replicated", "float"}, SentSetting{"sharded-optimizer", "float"},
                                         SentSetting{"sharded-gradients", "float"}, SentSetting{"hybrid", "bfloat16"},
                                         SentSetting{"sharded", "float", "4"}),
                         [](const auto& of) {
                           std::string name = of.param.strategy + "_" + of.param.communication_precision;
                           if (of.param.micro_batches != "1") name += "_" + of.param.micro_batches;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace mylos::tests
