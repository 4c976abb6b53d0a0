#include "tests/app/family.hpp"
#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <sstream>

/// Training, evaluation and questions through the program, on a generated model and data.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class Runs : public EvaluatedRun {};
using RunsOfFamily = OnFamily<EvaluatedRun>;

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5 * expected[i]) << i;
}

TEST_F(Runs, TrainWritesWhatTheInterfaceSays) {
  const ProgramRun run = train(run_, {"--epochs", "2", "--eval-on-start"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  for (const char* name : {"run.json", "metrics.jsonl", "results.json", "predictions.json", "nbest_predictions.json",
                           "best/config.json", "best/model.safetensors", "best/vocab.txt", "last/model.safetensors"}) {
    EXPECT_TRUE(fs::exists(run_ / name)) << name;
  }
  EXPECT_FALSE(fs::exists(run_ / "null_odds.json"));
  for (const char* step : {"0", "3", "6"}) {
    EXPECT_EQ(read_json(run_ / "evaluations" / (std::string(step) + ".json")).size(), 12u) << step;
  }
  EXPECT_EQ(values_of(run_, "loss").size(), 6u);
  EXPECT_EQ(json::parse(run.output), read_json(run_ / "results.json"));
  EXPECT_TRUE(read_json(run_ / "results.json").contains("exact_match"));
  const std::string last = run.error_lines().back();
  EXPECT_TRUE(last.starts_with("done after 6 steps: ")) << last;
  EXPECT_NE(last.find("training 0:0"), std::string::npos) << last;
  EXPECT_NE(last.find("f1"), std::string::npos) << last;
  EXPECT_NE(run.errors.find("model    "), std::string::npos);
  EXPECT_NE(run.errors.find("step 0: "), std::string::npos);
}

/// Each question has one window, because the recipe truncates contexts.
TEST_F(Runs, FollowTheirRecipe) {
  const Words words = {"--recipe", "lightning-fsdp-squad", "--bf16", "--max-length", "20", "--epochs", "1"};
  const ProgramRun run = train(run_, words);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("--recipe lightning-fsdp-squad sets --weight-decay 0.01 --decay-all "
                                    "--schedule constant --clip 0 --long truncate --mode sharded\n"));
  EXPECT_THAT(run.errors, HasSubstr("12 questions, 12 windows"));
  const json settings = read_json(run_ / "run.json");
  EXPECT_EQ(settings["recipe"], "lightning-fsdp-squad");
  EXPECT_EQ(settings["weight-decay"], 0.01);
  EXPECT_EQ(train(run_, words).output, run.output) << "the finished run";
  const ProgramRun eval = run_mylos({"eval", "--model", run_, "--data", dev_, "--output", directory_ / "scored"});
  EXPECT_EQ(eval.exit_code, 0) << eval.errors;
  EXPECT_THAT(eval.errors, HasSubstr("--long truncate"));
  const ProgramRun repeated = run_mylos({"train", "--config", run_ / "run.json", "--output", directory_ / "again"});
  EXPECT_EQ(repeated.exit_code, 0) << repeated.errors;
  EXPECT_EQ(values_of(directory_ / "again", "loss"), values_of(run_, "loss"));
  EXPECT_THAT(run_mylos({"train", "--recipe", "list"}).output,
              HasSubstr("\nrun_qa: transformers' run_qa.py\n  --epochs 3"));
}

TEST_F(Runs, AFinishedRunPrintsItsResultsAndNamesTheOptionsThatDiffer) {
  const ProgramRun first = train(run_, {"--steps", "2"});
  const std::string metrics = read_file(run_ / "metrics.jsonl");
  const ProgramRun same = train(run_, {"--steps", "2", "--checkpoint-every", "7"});
  EXPECT_EQ(same.exit_code, 0) << same.errors;
  EXPECT_EQ(same.output, first.output);
  const ProgramRun second = train(run_, {"--steps", "3", "--seed", "7", "--precision", "bf16"});
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_EQ(second.output, "");
  ASSERT_EQ(second.error_lines().size(), 1u) << second.errors;
  const std::string start = "mylos: error: --output " + run_.string() + " contains a finished run with other options: ";
  EXPECT_TRUE(second.errors.starts_with(start)) << second.errors;
  for (const char* what :
       {"steps 2, now 3", "seed 42, now 7", "precision float, now bfloat16", "--extend", "--overwrite"}) {
    EXPECT_NE(second.errors.find(what), std::string::npos) << second.errors;
  }
  EXPECT_EQ(second.errors.find("model"), std::string::npos) << second.errors;
  const ProgramRun extended = train(run_, {"--steps", "3", "--seed", "7", "--precision", "bf16", "--extend"});
  EXPECT_EQ(extended.exit_code, 2);
  EXPECT_EQ(extended.errors.find("precision"), std::string::npos) << "a resumed run may change it: " << extended.errors;
  EXPECT_EQ(read_file(run_ / "metrics.jsonl"), metrics);
  EXPECT_EQ(train(run_, {"--steps", "3", "--overwrite"}).exit_code, 0);
  EXPECT_EQ(values_of(run_, "loss").size(), 3u);
}

TEST_P(RunsOfFamily, RunJsonRepeatsTheRunAndEvalItsScores) {
  const Words options = with_noise({"--steps", "4", "--warmup", "0.5", "--seed", "7", "--gemm", "auto"});
  ASSERT_EQ(train(run_, options).exit_code, 0);
  const fs::path again = directory_ / "again";
  const ProgramRun run = run_mylos({"train", "--config", run_ / "run.json", "--output", again});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  expect_near(values_of(again, "loss"), values_of(run_, "loss"));
  json one = read_json(run_ / "run.json"), two = read_json(again / "run.json");
  EXPECT_EQ(two["output"], again.string());
  EXPECT_EQ(one["resolved"]["steps"], 4);
  EXPECT_EQ(one["resolved"]["counts"], family_.work);
  EXPECT_EQ(two["resolved"]["gemm"], one["resolved"]["gemm"]);
  for (const char* key : {"output", "state", "resolved"}) {
    one.erase(key);
    two.erase(key);
  }
  EXPECT_EQ(one, two);
  const ProgramRun eval = run_mylos({"eval", "--model", run_, "--data", dev_, "--output", directory_ / "scored"});
  ASSERT_EQ(eval.exit_code, 0) << eval.errors;
  const json found = json::parse(eval.output), expected = read_json(run_ / "results.json");
  for (const auto& [name, value] : expected.items()) {
    EXPECT_NEAR(found[name].get<double>(), value.get<double>(), 1e-5 * value.get<double>()) << name;
  }
}

TEST_P(RunsOfFamily, NeitherMicroBatchNorRecomputationChangesTheLosses) {
  ASSERT_EQ(train(run_, {"--steps", "4"}).exit_code, 0);
  const fs::path other = directory_ / "other";
  ASSERT_EQ(train(other, {"--steps", "4", "--recompute", family_.recomputation}).exit_code, 0);
  EXPECT_EQ(values_of(other, "loss"), values_of(run_, "loss"));
  const std::string micro = family_.work == "tokens" ? "--micro-tokens=100" : "--gradient-accumulation-steps=2";
  for (const std::string& more : {std::string("--micro-batch=1"), micro}) {
    ASSERT_EQ(train(other, {"--steps", "4", "--overwrite", more}).exit_code, 0);
    expect_near(values_of(other, "loss"), values_of(run_, "loss"));
  }
}

TEST_F(Runs, FewerTokensThanASequenceHasIsRefused) {
  const ProgramRun run = train(run_, {"--steps", "4", "--micro-tokens", "10"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.errors.find("--micro-tokens 10: the longest sequence "), std::string::npos) << run.errors;
  EXPECT_FALSE(fs::exists(run_ / "run.json"));
}

TEST_P(RunsOfFamily, WithoutDevBestIsLast) {
  const ProgramRun run =
      run_mylos(with_options({"train", "--model", model_, "--train", train_, "--output", run_, "--steps", "2"}, {}));
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_EQ(run.output, "");
  EXPECT_FALSE(fs::exists(run_ / "results.json"));
  EXPECT_EQ(read_file(run_ / "best/model.safetensors"), read_file(run_ / "last/model.safetensors"));
}

TEST_F(Runs, ADryRunWritesNothing) {
  const ProgramRun run = train(run_, {"--dry-run"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_NE(run.errors.find("memory   "), std::string::npos);
  EXPECT_FALSE(fs::exists(run_));
}

TEST_F(Runs, AHeadIsDrawnFromTheSeedAndSaid) {
  write_tiny_model(model_, {.has_head = false});
  const ProgramRun run = train(run_, {"--steps", "1"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.errors.find("has no qa_outputs"), std::string::npos) << run.errors;
  const ProgramRun eval = run_mylos({"eval", "--model", model_, "--data", dev_, "--output", directory_ / "e",
                                     "--max-length", "60", "--doc-stride", "20"});
  EXPECT_EQ(eval.exit_code, 1);
  EXPECT_NE(eval.errors.find("qa_outputs"), std::string::npos) << eval.errors;
}

TEST_F(Runs, EvalScoresARunsBestAsItWas) {
  write_file(dev_, tiny_questions("v2.0"));
  ASSERT_EQ(train(run_, {"--steps", "3"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(run_ / "null_odds.json"));
  const fs::path output = directory_ / "eval";
  const ProgramRun eval = run_mylos({"eval", "--model", run_, "--data", dev_, "--output", output, "--max-length", "60",
                                     "--doc-stride", "20", "--gemm", default_provider()});
  ASSERT_EQ(eval.exit_code, 0) << eval.errors;
  for (const char* name : {"results.json", "predictions.json", "null_odds.json"}) {
    EXPECT_EQ(read_file(output / name), read_file(run_ / name)) << name;
  }
  const ProgramRun score = run_mylos({"score", dev_, output / "predictions.json"});
  EXPECT_EQ(json::parse(score.output)["f1"], json::parse(eval.output)["f1"]);
  EXPECT_NE(eval.errors.find(" windows/s; validation loss "), std::string::npos) << eval.errors;
  const ProgramRun refused = run_mylos(
      {"eval", "--model", run_, "--data", dev_, "--output", run_, "--max-length", "60", "--doc-stride", "20"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.errors.find("contains a training run"), std::string::npos) << refused.errors;
}

TEST_F(Runs, QuestionsWithoutAnswersArePredictedAndNotScored) {
  json document = json::parse(tiny_questions());
  for (json& paragraph : document["data"][0]["paragraphs"]) {
    for (json& question : paragraph["qas"]) question.erase("answers");
  }
  write_file(dev_, document.dump());
  const fs::path output = directory_ / "eval";
  const ProgramRun eval = run_mylos(
      {"eval", "--model", model_, "--data", dev_, "--output", output, "--max-length", "60", "--doc-stride", "20"});
  EXPECT_EQ(eval.exit_code, 0) << eval.errors;
  EXPECT_EQ(eval.output, "");
  EXPECT_EQ(read_json(output / "predictions.json").size(), 12u);
  EXPECT_FALSE(fs::exists(output / "results.json"));
}

TEST_F(Runs, PreparedFeaturesStandInForTheJson) {
  const fs::path features = directory_ / "train.h5";
  const ProgramRun prepare = run_mylos({"prepare", "--model", model_, "--data", train_, "--output", features,
                                        "--max-length", "60", "--doc-stride", "20"});
  ASSERT_EQ(prepare.exit_code, 0) << prepare.errors;
  ASSERT_EQ(train(run_, {"--steps", "4"}).exit_code, 0);
  const ProgramRun other = train(directory_ / "other", {"--steps", "4", "--train", features, "--dev", features});
  ASSERT_EQ(other.exit_code, 0) << other.errors;
  expect_near(values_of(directory_ / "other", "loss"), values_of(run_, "loss"));
  EXPECT_EQ(read_file(directory_ / "other" / "predictions.json"), read_file(run_ / "predictions.json"));
}

TEST_F(Runs, PreparedLinesShowEachWindow) {
  const fs::path lines = directory_ / "train.jsonl";
  const ProgramRun prepare = run_mylos(
      {"prepare", "--model", model_, "--data", train_, "--output", lines, "--max-length", "60", "--doc-stride", "20"});
  ASSERT_EQ(prepare.exit_code, 0) << prepare.errors;
  std::istringstream stream(read_file(lines));
  std::string first;
  std::getline(stream, first);
  const json line = json::parse(first);
  EXPECT_EQ(line["id"], "q01");
  EXPECT_EQ(line["window"], 0);
  EXPECT_EQ(line["input_ids"].size(), line["offsets"].size());
  EXPECT_EQ(line["input_ids"].size(), line["token_type_ids"].size());
  EXPECT_TRUE(line["offsets"][0].is_null());
  // The answer "red" is at characters 4 to 7.
  EXPECT_EQ(line["offsets"][line["start"].get<int>()][0], 4);
  EXPECT_EQ(line["offsets"][line["end"].get<int>()][1], 7);
}

/// Expects lines of `mylos ask --json` that differ at most in the last digits of scores, because on some processors the
/// order of sums depends on the batch size.
void expect_same_answers(const std::string& actual, const std::string& expected) {
  std::istringstream actual_lines(actual), expected_lines(expected);
  for (std::string line, other; std::getline(expected_lines, line);) {
    ASSERT_TRUE(std::getline(actual_lines, other));
    json answer = json::parse(line), same = json::parse(other);
    EXPECT_NEAR(same["score"].get<double>(), answer["score"].get<double>(), 1e-6);
    answer.erase("score");
    same.erase("score");
    EXPECT_EQ(same, answer);
  }
  EXPECT_EQ(actual_lines.peek(), std::istringstream::traits_type::eof());
}

TEST_F(Runs, AskShowsAnswerAndPlace) {
  const fs::path context = directory_ / "context.txt";
  const std::string text = "the red fox runs far. a job waits.";
  write_file(context, text);
  const Words base = {"ask", "--model",      model_, "--context", context,           "--max-length",
                      "60",  "--doc-stride", "10",   "--gemm",    default_provider()};
  Words asked = joined(base, {"--json", "who runs?", "what waits?"});
  const ProgramRun run = run_mylos(asked);
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  Words piped = base;
  piped.push_back("--json");
  expect_same_answers(run_mylos(piped, "who runs?\n\n \t\u00a0\r\nwhat waits?\n").output, run.output);
  std::istringstream lines(run.output);
  std::string line;
  std::size_t count = 0;
  for (; std::getline(lines, line); ++count) {
    const json answer = json::parse(line);
    const auto begin = answer["start"].get<std::size_t>(), end = answer["end"].get<std::size_t>();
    EXPECT_EQ(answer["answer"], text.substr(begin, end - begin));
    EXPECT_NE(answer["context"].get<std::string>().find(answer["answer"].get<std::string>()), std::string::npos);
    EXPECT_GT(answer["score"].get<double>(), 0.0);
  }
  EXPECT_EQ(count, 2u);
  Words plain = base;
  plain.push_back("who runs?");
  const ProgramRun shown = run_mylos(plain);
  EXPECT_TRUE(shown.output.starts_with("who runs?\n  ")) << shown.output;
  EXPECT_EQ(shown.output.find('\x1b'), std::string::npos);
}

/// Processes that no launcher started would otherwise share a session directory of Open MPI, and remove it under each
/// other. Here none can be created.
TEST_F(Runs, NeedNoSessionDirectoryOfMpi) {
  write_file(directory_ / "file", "");
  const EnvironmentVariable sessions("OMPI_MCA_orte_tmpdir_base", (directory_ / "file").string());
  const ProgramRun run = run_mylos({"train", "--model", model_, "--train", train_, "--output", run_, "--max-length",
                                    "60", "--doc-stride", "20", "--steps", "1"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
}

TEST_F(Runs, SignalsEndLoadingAtOnce) {
  const fs::path pipe = directory_ / "questions.json";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& [signal, exit_code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}, {SIGUSR1, 85}}) {
    RunningProgram program(train_words(run_, {"--steps", "2", "--train", pipe}));
    const int writer = open_when_read(pipe);
    ASSERT_GE(writer, 0);
    program.send(signal);
    const ProgramRun run = program.wait();
    ::close(writer);
    EXPECT_EQ(run.exit_code, exit_code) << run.errors;
    EXPECT_EQ(run.error_lines().size(), 1u) << run.errors;
  }
  const ProgramRun run = train(run_, {"--steps", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
}

TEST_F(Runs, AProviderThatTheRecordedRunHadAndThisBuildLacksIsNamed) {
  ASSERT_EQ(train(run_, {"--steps", "1", "--gemm", "auto"}).exit_code, 0);
  json recorded = read_json(run_ / "run.json");
  recorded["resolved"]["gemm"]["default"] = "mkl";
  write_file(directory_ / "other.json", recorded.dump());
  const Words words = {"train", "--config", directory_ / "other.json", "--output", directory_ / "again"};
  const ProgramRun run = run_mylos(words);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.errors, HasSubstr("no GEMM provider \"mkl\" in this build; there are: kokkos-kernels"));
  Words measured = joined(words, {"--gemm", "auto"});
  EXPECT_EQ(run_mylos(measured).exit_code, 0);
}

TEST_F(Runs, TimingsOfProductsAreKept) {
  ASSERT_EQ(train(run_, {"--steps", "1", "--gemm", "auto"}).exit_code, 0);
  const fs::path cache = directory_ / "cache" / "mylos" / "gemm";
  const auto products = [&] { return read_json(run_ / "run.json")["resolved"]["gemm"]["products"]; };
  ASSERT_EQ(fs::exists(cache), !products().empty());  // a build with one provider measures nothing
  if (!fs::exists(cache)) return;
  const json timed = read_json(fs::directory_iterator(cache)->path())["choice"]["products"];
  EXPECT_FALSE(timed.empty());
  ASSERT_EQ(train(run_, {"--steps", "1", "--gemm", "auto", "--overwrite"}).exit_code, 0);
  const json again = products();
  for (const json& product : timed) EXPECT_NE(std::ranges::find(again, product), again.end()) << product;
}

MYLOS_FOR_EACH_FAMILY(RunsOfFamily);

}  // namespace
}  // namespace mylos::tests
