#include "core/device.hpp"
#include "core/kernels/products/openblas_kernels.hpp"
#include "tests/app/family.hpp"
#include "tests/app/rank_runs.hpp"
#include "tests/data/images/small_images.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <sstream>

/// The program started by mpirun behaves like a single process.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

using RanksOfTheProgram = RankRuns;
using RanksOfFamily = OnFamily<RankRuns>;

/// Returns the lines that the program wrote; mpirun adds its own.
Words errors_of(const ProgramRun& run) {
  Words lines = run.error_lines();
  std::erase_if(lines, [](const std::string& line) { return !line.starts_with("mylos: error: "); });
  return lines;
}

void expect_error(const ProgramRun& run, const std::string& what, int exit_code = 1) {
  EXPECT_EQ(run.exit_code, exit_code) << run.errors;
  ASSERT_EQ(errors_of(run).size(), 1u) << run.errors;
  EXPECT_THAT(errors_of(run).front(), HasSubstr(what));
}

json run_json_of(const fs::path& run) { return json::parse(read_file(run / "run.json")); }

/// Expects results with the same names and with numbers within the tolerance of losses.
void expect_results_near(const json& results, const json& expected) {
  ASSERT_EQ(results.size(), expected.size()) << results;
  for (const auto& [name, value] : expected.items()) {
    ASSERT_TRUE(results.contains(name)) << name;
    EXPECT_NEAR(results[name].get<double>(), value.get<double>(), 1e-5 * value.get<double>()) << name;
  }
}

TEST_P(RanksOfFamily, TrainAsOneDoes) {
  const fs::path one = directory_ / "one", three = directory_ / "three";
  const ProgramRun alone = run_mylos(train_words(one));
  ASSERT_EQ(alone.exit_code, 0) << alone.errors;
  const ProgramRun together = run_on(3, train_words(three, {"--mode", "fsdp"}));
  ASSERT_EQ(together.exit_code, 0) << together.errors;
  const auto expected = metrics_of(one), actual = metrics_of(three);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].contains("checkpoint"), expected[i].contains("checkpoint"));
    if (expected[i].contains("checkpoint")) continue;
    const char* key = expected[i].contains("loss") ? "loss" : "validation_loss";
    EXPECT_NEAR(actual[i][key].get<double>(), expected[i][key].get<double>(), 1e-4) << expected[i];
    EXPECT_EQ(actual[i].value(family_.metric, 0.0), expected[i].value(family_.metric, 0.0));
  }
  const json resolved = run_json_of(three)["resolved"];
  EXPECT_EQ(resolved["ranks"], 3);
  EXPECT_EQ(resolved["nodes"], 1);
  EXPECT_EQ(resolved["threads"], 1);
  EXPECT_EQ(resolved["mode"], "sharded");
  EXPECT_EQ(run_json_of(three)["state"]["finished"], true);
  expect_results_near(json::parse(together.output), json::parse(alone.output));  // the results, printed once
  EXPECT_THAT(together.errors, HasSubstr("ranks    3 on 1 node, 1 thread each; sharded\n"));
  const Words lines = together.error_lines();
  EXPECT_EQ(std::ranges::count_if(lines, [](const std::string& line) { return line.starts_with("done after "); }), 1);
  EXPECT_TRUE(fs::exists(three / "best" / "model.safetensors"));
  // A finished run is left unchanged on any number of ranks.
  const ProgramRun again = run_on(2, train_words(three, {"--mode", "fsdp"}));
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(again.output, together.output);
  EXPECT_THAT(again.errors, HasSubstr("--overwrite starts over"));
}

TEST_P(RanksOfFamily, DeterministicRunsWriteTheSameBytes) {
  const auto weights = [](const fs::path& run) { return read_file(run / "last" / "model.safetensors"); };
  const fs::path one = directory_ / "one", four = directory_ / "four";
  const ProgramRun alone = run_mylos(train_words(one, {"--deterministic"}));
  ASSERT_EQ(alone.exit_code, 0) << alone.errors;
  const ProgramRun together =
      run_on(4, train_words(four, {"--deterministic", "--mode", "hybrid", "--shard-size", "2"}));
  ASSERT_EQ(together.exit_code, 0) << together.errors;
  EXPECT_TRUE(weights(four) == weights(one));
  EXPECT_THAT(together.errors, HasSubstr("hybrid in groups of 2 ranks, deterministic in 8 micro-batch groups\n"));
}

/// Also if a rank has more samples than others, because samples are distributed by their tokens.
TEST_F(RanksOfTheProgram, ABatchSizePerDeviceIsTheMicroBatch) {
  const ProgramRun run = run_on(2, train_words(run_, {"--batch_size_per_device", "2", "--gradient_accumulation_steps",
                                                      "2", "--max_training_steps", "2", "--no_fsdp"}));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json resolved = run_json_of(run_)["resolved"];
  EXPECT_EQ(resolved["batch"], 8);
  EXPECT_EQ(resolved["micro-batch"], 2);
  EXPECT_EQ(resolved["steps"], 2);
  EXPECT_EQ(resolved["mode"], "replicated");
  EXPECT_EQ(metrics_of(run_).front()[family_.samples], 8);
  const ProgramRun same = run_on(2, train_words(run_, {"--batch", "8", "--micro-batch", "2", "--steps", "2"}));
  EXPECT_EQ(same.exit_code, 0) << same.errors;
  EXPECT_THAT(same.errors, HasSubstr("--overwrite starts over")) << "it is the same run";
  const ProgramRun parts =
      run_on(2, train_words(run_, {"--overwrite", "--gradient-accumulation-steps", "2", "--steps", "1"}));
  ASSERT_EQ(parts.exit_code, 0) << parts.errors;
  EXPECT_EQ(run_json_of(run_)["gradient-accumulation-steps"], 2);
  EXPECT_EQ(run_json_of(run_)["resolved"]["micro-batch"], 2) << "2 and 3 sequences, each in 2 parts";
}

TEST_F(RanksOfTheProgram, DryRunsTellTheMemoryOfARank) {
  const ProgramRun run = run_on(2, train_words(run_, {"--dry-run", "--mode", "zero1"}));
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("at most on a rank: "));
  EXPECT_THAT(run.errors, HasSubstr("sharded-optimizer"));
  EXPECT_FALSE(fs::exists(run_));
}

/// OpenBLAS computes with kernels for another kind of CPU on the second rank.
TEST_F(RanksOfTheProgram, OnDifferentKindsOfProcessorsCannotBeDeterministic) {
  const char* const other = "Nehalem";
  if (!runs_on_host || openblas_config().find("DYNAMIC_ARCH") == std::string::npos || openblas_kernels() == other) {
    GTEST_SKIP() << "this build computes without OpenBLAS's choice of kernels, or this CPU has those of the test";
  }
#if !defined(__x86_64__)
  GTEST_SKIP() << "the kernels are those of an x86 CPU";
#endif
  const auto run_with = [&](const Words& more) {
    const Words words = train_words(run_, more);
    Words all = joined(launched({words}),
                       {":", "-n", "1", "/usr/bin/env", std::string("OPENBLAS_CORETYPE=") + other, program()});
    all.insert(all.end(), words.begin(), words.end());
    return RunningProgram(all, "", {}, mpiexec()).wait();
  };
  expect_error(run_with({"--deterministic", "--leaves", "4"}),
               "--deterministic: ranks compute on different kinds of processors: rank 0 on ");
  const ProgramRun run = run_with({"--precision", "bfloat16", "--steps", "1"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("; bfloat16 is not rounded alike on them"));
}

TEST_F(RanksOfTheProgram, ATraceHasTheEventsOfAll) {
  const fs::path trace = directory_ / "trace.json";
  const ProgramRun run = run_on(2, train_words(run_, {"--steps", "2", "--mode", "sharded", "--trace", trace}));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  std::map<std::string, int> events;  // by rank and lane
  const json file = json::parse(read_file(trace));
  for (const json& event : file["traceEvents"]) {
    if (event["ph"] == "X") ++events[fmt::format("{} {}", event["pid"].get<int>(), event["tid"].get<int>())];
  }
  EXPECT_EQ(events.size(), 6u) << "3 lanes of 2 ranks";
}

TEST_F(RanksOfTheProgram, ErrorsAreToldOnce) {
  expect_error(run_on(2, train_words(run_, {"--batch", "none"})), "--batch none: expected a whole number", 2);
  expect_error(run_on(2, train_words(run_, {"--model", "/no/such/model"})),
               "mylos: error: no directory /no/such/model");
  expect_error(run_on(2, train_words(run_, {"--shard-size", "2"})), "--shard-size 2: belongs to --mode hybrid");
  expect_error(run_on(3, train_words(run_, {"--deterministic"})),
               "8 micro-batch groups cannot be divided among 3 ranks");
  EXPECT_FALSE(fs::exists(run_ / "run.json"));
  fs::create_directories(run_);
  write_file(run_ / "notes.txt", "mine");
  expect_error(run_on(2, train_words(run_)), "contains notes.txt, which no training run wrote");
}

TEST_F(RanksOfTheProgram, HelpIsPrintedOnce) {
  const ProgramRun run = run_on(2, {"train", "--help"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(run.output, run_mylos({"train", "--help"}).output);
  const EnvironmentVariable others("OMPI_COMM_WORLD_SIZE", "2");
  EXPECT_EQ(run_mylos({"train", "--help"}).output, run.output) << "MPI is not needed";
}

/// Runs in which only the first rank has some files. The paths are the same on every rank, but lead through its working
/// directory.
class FilesOfTheFirstRank : public RankRuns {
 protected:
  using RankRuns::RankRuns;

  void SetUp() override {
    RankRuns::SetUp();
    fs::create_directory(elsewhere_);
  }

  static fs::path in_working_directory(const fs::path& file) { return "/proc/self/cwd" / file.filename(); }
  Words words_of_first(const fs::path& output, const Words& more = {}) const {
    Words words = train_words(output, more);
    for (const fs::path& file : {train_, dev_}) {
      std::ranges::replace(words, file.string(), in_working_directory(file).string());
    }
    return words;
  }
  ProgramRun run_apart(std::size_t ranks, const Words& words) const {
    Words all;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (rank > 0) all.emplace_back(":");
      all.insert(all.end(), {"-n", "1", "sh", "-c", "cd \"$0\" && exec \"$@\"",
                             rank == 0 ? directory_.path() : elsewhere_, program()});
      all.insert(all.end(), words.begin(), words.end());
    }
    return RunningProgram(all, "", {}, mpiexec()).wait();
  }

  fs::path elsewhere_ = directory_ / "elsewhere";
};

/// tests/tasks/test_received_data.cpp has tasks of several kinds.
using DataOfTheFirstRank = FilesOfTheFirstRank;

TEST_F(DataOfTheFirstRank, AreTheDataOfAll) {
  const fs::path one = directory_ / "one";
  const ProgramRun alone = run_mylos(train_words(one, {"--deterministic"}));
  ASSERT_EQ(alone.exit_code, 0) << alone.errors;
  const ProgramRun run = run_apart(4, words_of_first(run_, {"--deterministic"}));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(run_json_of(run_)["resolved"]["checksums"], run_json_of(one)["resolved"]["checksums"]);
  for (const char* loss : {"loss", "validation_loss"}) EXPECT_EQ(values_of(run_, loss), values_of(one, loss));
}

TEST_F(DataOfTheFirstRank, HaveErrorsThatAreToldOnceWithoutARank) {
  write_file(train_, "no data");
  expect_error(run_apart(3, words_of_first(run_)), "mylos: error: " + in_working_directory(train_).string());
  fs::remove(train_);
  const ProgramRun missing = run_apart(4, words_of_first(run_));
  expect_error(missing, in_working_directory(train_).string());
  EXPECT_THAT(missing.errors, Not(HasSubstr("rank 0: ")));
  EXPECT_FALSE(fs::exists(run_ / "run.json"));
}

TEST_F(DataOfTheFirstRank, MayBePrepared) {
  const fs::path prepared = directory_ / "train.h5";
  const ProgramRun preparing =
      run_mylos(with_options({"prepare", "--model", model_, "--data", train_, "--output", prepared}, {}));
  ASSERT_EQ(preparing.exit_code, 0) << preparing.errors;
  Words words = words_of_first(run_);
  std::ranges::replace(words, in_working_directory(train_).string(), in_working_directory(prepared).string());
  const ProgramRun run = run_apart(2, words);
  EXPECT_EQ(run.exit_code, 0) << run.errors;
}

/// On the other ranks these files are there, but empty. The task follows from config.json.
TEST_F(DataOfTheFirstRank, IncludeTheModelsFilesAndTheSettings) {
  write_file(directory_ / "settings.json", R"({"steps": 2})");
  write_file(elsewhere_ / "settings.json", "");
  for (const char* name : {"config.json", "vocab.txt"}) {
    if (!fs::exists(model_ / name)) continue;
    fs::rename(model_ / name, directory_ / name);
    fs::create_symlink(fs::path("/proc/self/cwd") / name, model_ / name);
    write_file(elsewhere_ / name, "");
  }
  const ProgramRun run =
      run_apart(3, words_of_first(run_, {"--config", in_working_directory(directory_ / "settings.json").string()}));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(run_json_of(run_)["resolved"]["steps"], 2);
}

class ImagesOfTheFirstRank : public FilesOfTheFirstRank {
 protected:
  ImagesOfTheFirstRank() : FilesOfTheFirstRank(resnet_family()) {}
};

/// The directory must exist for every rank.
TEST_F(ImagesOfTheFirstRank, AreNotEnoughAndTheOtherRankIsNamed) {
  expect_error(run_apart(2, words_of_first(run_)), "mylos: error: rank 1: ");
}

/// The other ranks do not read files that the first rank keeps in memory as a whole.
TEST_F(ImagesOfTheFirstRank, AreThoseOfAllIfTheyAreInMemory) {
  for (const fs::path& data : {train_, dev_}) {
    for (const auto& file : fs::directory_iterator(data)) {
      write_file(elsewhere_ / data.filename() / file.path().filename(), "");
    }
  }
  const ProgramRun run = run_apart(3, words_of_first(run_));
  EXPECT_EQ(run.exit_code, 0) << run.errors;
}

/// Every rank reads the images that it trains on from a prepared file, by the index that the first rank has read.
TEST_F(ImagesOfTheFirstRank, MustBeThoseOfThePreparedFileOfAll) {
  const fs::path other = directory_ / "other", prepared = directory_ / "train.h5";
  write_small_digits(other, 60, 0);  // a larger file
  for (const auto& [data, file] : {std::pair(train_, prepared), std::pair(other, elsewhere_ / "train.h5")}) {
    const ProgramRun preparing =
        run_mylos({"prepare", "--task", "image-classification", "--data", data, "--output", file});
    ASSERT_EQ(preparing.exit_code, 0) << preparing.errors;
  }
  family_.write_data(elsewhere_ / dev_.filename());
  Words words = words_of_first(run_);
  std::ranges::replace(words, in_working_directory(train_).string(), in_working_directory(prepared).string());
  const ProgramRun run = run_apart(2, words);
  expect_error(run, "mylos: error: rank 1: ");
  EXPECT_THAT(run.errors, HasSubstr("where its index was read: all ranks need the same file"));
  fs::copy_file(prepared, elsewhere_ / "train.h5", fs::copy_options::overwrite_existing);
  EXPECT_EQ(run_apart(2, words).exit_code, 0);
}

/// The first rank waits for the content of a pipe, and the others wait for the data.
TEST_F(FilesOfTheFirstRank, AreReadUntilASignalEndsAllRanks) {
  fs::remove(train_);
  ASSERT_EQ(::mkfifo(train_.c_str(), S_IRUSR | S_IWUSR), 0);
  RunningProgram program(launched(std::vector<Words>(3, train_words(run_))), "", {}, mpiexec());
  const int pipe = open_when_read(train_);
  EXPECT_GE(pipe, 0);
  program.send(SIGUSR1);  // mpirun forwards it
  const ProgramRun run = program.wait();
  ::close(pipe);
  EXPECT_EQ(run.exit_code, 85) << run.errors;
  EXPECT_FALSE(fs::exists(run_ / "run.json"));
}

TEST_F(FilesOfTheFirstRank, IncludingTheModelsAreNotEnoughAndTheOtherRankIsNamed) {
  const fs::path vocabulary = model_ / "vocab.txt";
  fs::rename(vocabulary, directory_ / "vocab.txt");
  fs::create_symlink("/proc/self/cwd/vocab.txt", vocabulary);
  expect_error(run_apart(2, words_of_first(run_)), "mylos: error: rank 1: ");
}

TEST_F(RanksOfTheProgram, WhatDiffersBetweenRanksIsNamed) {
  expect_error(run_on({train_words(run_), train_words(run_, {"--seed", "7"})}),
               "mylos: error: rank 1: --seed is \"7\", on rank 0 it is \"42\": make them the same on every node");
  Words other = train_words(run_);
  std::ranges::replace(other, train_.string(), dev_.string());
  expect_error(run_on({train_words(run_), other}), "mylos: error: rank 1: --train is ");
  // A recipe is named before its settings.
  expect_error(
      run_on({train_words(run_, {"--recipe", "run_qa"}), train_words(run_, {"--recipe", "lightning-ddp-squad"})}),
      "mylos: error: rank 1: --recipe is \"lightning-ddp-squad\", on rank 0 it is \"run_qa\": make them");
}

TEST_F(RanksOfTheProgram, OneSpeaksUnlessAllAreToldTo) {
  const ProgramRun one = run_on(2, train_words(directory_ / "one", {"--steps", "2"}));
  ASSERT_EQ(one.exit_code, 0) << one.errors;
  EXPECT_THAT(one.errors, AllOf(HasSubstr("\nstep 2/2 (100 %)"), Not(HasSubstr("rank 0: step"))));
  const ProgramRun all = run_on(2, train_words(directory_ / "all", {"--steps", "2", "--verbose"}));
  ASSERT_EQ(all.exit_code, 0) << all.errors;
  for (const char* rank : {"\nrank 0: ", "\nrank 1: "}) {
    EXPECT_THAT(all.errors, HasSubstr(rank + std::string("step 2/2 (100 %)")));
    EXPECT_THAT(all.errors, HasSubstr(rank + std::string("step 2: validation loss ")));
  }
  EXPECT_EQ(one.output, all.output);
}

TEST_F(RanksOfTheProgram, OtherCommandsRunAlone) {
  const Words words = {"eval", "--model", model_, "--data", dev_, "--output", run_};
  expect_error(run_on(2, words), "eval runs as one process, but the launcher started 2", 2);
  EXPECT_FALSE(fs::exists(run_));
}

MYLOS_FOR_EACH_FAMILY(RanksOfFamily);

}  // namespace
}  // namespace mylos::tests
