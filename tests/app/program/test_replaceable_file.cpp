#include "app/program/replaceable_file.hpp"

#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// The treatment of existing files by commands.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class ReplaceableFile : public EvaluatedRun {};

TEST_F(ReplaceableFile, AnEmptyFileIsNobodysAndADirectoryIsNoFile) {
  const auto is_ours = [](const fs::path&) { return false; };
  const fs::path file = directory_ / "file";
  const app::OutputFile output{"--output", file, "a report", is_ours};
  EXPECT_NO_THROW(app::check_replaceable(output, false));
  write_file(file, "");
  EXPECT_NO_THROW(app::check_replaceable(output, false));
  write_file(file, "x");
  EXPECT_EQ(error_of([&] { app::check_replaceable(output, false); }),
            "--output " + file.string() +
                ": exists and is not a report; choose another name, or replace it with --overwrite");
  EXPECT_NO_THROW(app::check_replaceable(output, true));
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(error_of([&] { app::check_replaceable(output, true); }),
            "--output " + file.string() + ": is not a file; give the name of a file");
}

TEST_F(ReplaceableFile, EvalReplacesItsOwnResultsOnly) {
  const fs::path output = directory_ / "eval";
  const auto eval = [&](const Words& more = {}) {
    Words words = {"eval", "--model",      model_, "--data",       dev_, "--output",
                   output, "--max-length", "60",   "--doc-stride", "20"};
    words.insert(words.end(), more.begin(), more.end());
    return run_mylos(words);
  };
  fs::create_directories(output);
  write_file(output / "notes.txt", "kept");
  for (const char* name : {"predictions.json", "predictions.jsonl", "nbest_predictions.json", "null_odds.json",
                           "results.json", "evaluation.json"}) {
    write_file(output / name, "[\"of somebody\"]");
    EXPECT_THAT(eval().errors, AllOf(HasSubstr("--output " + output.string() + ": contains " + name),
                                     HasSubstr("choose another directory, or replace it with --overwrite")));
    if (name != std::string("evaluation.json")) fs::remove(output / name);
  }
  EXPECT_EQ(eval().exit_code, 1);
  EXPECT_EQ(read_file(output / "evaluation.json"), "[\"of somebody\"]");
  fs::remove(output / "evaluation.json");
  write_file(output / "predictions.json", "");
  EXPECT_EQ(eval().exit_code, 0) << "an empty file is nobody's";
  fs::remove(output / "evaluation.json");
  write_file(output / "results.json", "[\"of somebody\"]");
  EXPECT_EQ(eval({"--overwrite"}).exit_code, 0);
  EXPECT_TRUE(read_json(output / "results.json").contains("f1"));
  EXPECT_EQ(read_json(output / "evaluation.json")["data"], dev_.string());
  const ProgramRun again = eval({"--dev-limit", "3"});
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(read_json(output / "predictions.json").size(), 3u);
  EXPECT_EQ(read_file(output / "notes.txt"), "kept");
}

TEST_F(ReplaceableFile, PrepareReplacesItsOwnFilesOnly) {
  for (const char* name : {"windows.jsonl", "windows.h5"}) {
    const fs::path output = directory_ / name;
    const auto prepare = [&](const Words& more = {}) {
      Words words = {"prepare", "--model",      model_, "--data",       train_, "--output",
                     output,    "--max-length", "60",   "--doc-stride", "20"};
      words.insert(words.end(), more.begin(), more.end());
      return run_mylos(words);
    };
    write_file(output, "{\"id\": \"of somebody\"}\n");
    const ProgramRun refused = prepare();
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.error_lines().back(),
                HasSubstr(std::string(name) + ": exists and is not written by mylos prepare; "
                                              "choose another name, or replace it with --overwrite"));
    EXPECT_EQ(read_file(output), "{\"id\": \"of somebody\"}\n");
    if (name == std::string("windows.h5")) continue;
    const ProgramRun replaced = prepare({"--overwrite"});
    EXPECT_EQ(replaced.exit_code, 0) << replaced.errors;
    const ProgramRun own = prepare({"--train-limit", "3"});
    EXPECT_EQ(own.exit_code, 0) << own.errors;
    EXPECT_THAT(own.errors, HasSubstr("3 questions"));
  }
}

TEST_F(ReplaceableFile, ATraceReplacesATraceOnly) {
  const fs::path trace = directory_ / "trace.json";
  write_file(trace, "[\"of somebody\"]");
  const ProgramRun refused = train_here({"--steps", "1", "--overwrite", "--trace", trace});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.error_lines().back(), HasSubstr("--trace " + trace.string() +
                                                      ": exists and is not a trace of Mylos; choose another name, or "
                                                      "remove it"));
  EXPECT_EQ(read_file(trace), "[\"of somebody\"]");
  EXPECT_FALSE(fs::exists(run_));
  fs::remove(trace);
  for (int time = 0; time < 2; ++time) {
    const ProgramRun run = train_here({"--steps", "1", "--overwrite", "--trace", trace});
    EXPECT_EQ(run.exit_code, 0) << run.errors;
    EXPECT_TRUE(read_json(trace).contains("traceEvents"));
  }
}

/// Only what the engine names is spelled as an option, whatever files are called.
TEST_F(ReplaceableFile, OfAnyNameIsNamedAsItIs) {
  const fs::path output = directory_ / "`output` `micro-batch 4` {}";
  write_file(output / "`keep`", "not of a run");
  const ProgramRun run =
      run_mylos(with_options({"train", "--model", model_, "--train", train_, "--output", output}, {}));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.errors,
              HasSubstr("mylos: error: --output " + output.string() +
                        ": contains `keep`, which no training run wrote; choose an empty or a new directory"));
}

}  // namespace
}  // namespace mylos::tests
