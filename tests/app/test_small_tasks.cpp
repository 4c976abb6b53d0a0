#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

/// A task kind that the program does not have: its model is trained, resumed, evaluated and reported through the
/// program without other changes.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

class SmallTasks : public testing::Test {
 protected:
  void SetUp() override {
    write_file(words_ / "config.json", R"({"model_type": "word_pairs"})");
    write_file(images_ / "config.json", R"({"model_type": "resnet"})");
    write_file(sentences_, R"({"sentences": 320})");
    write_file(some_sentences_, R"({"sentences": 40, "after": 320})");
  }

  static ProgramRun run_small(const Words& words) { return RunningProgram(words, "", {}, MYLOS_SMALL_PROGRAM).wait(); }

  ProgramRun train_words(const Words& more) const {
    return run_small(
        joined({"train", "--model", words_, "--train", sentences_, "--dev", some_sentences_, "--output", run_}, more));
  }

  TemporaryDirectory directory_;
  fs::path words_ = directory_ / "words", images_ = directory_ / "images", run_ = directory_ / "run";
  fs::path sentences_ = directory_ / "sentences.json", some_sentences_ = directory_ / "dev.json";
  EnvironmentVariable cache_{"XDG_CACHE_HOME", (directory_ / "cache").string()};
};

TEST_F(SmallTasks, TheModelsTypeChoosesTheTask) {
  const ProgramRun run = train_words(
      {"--steps", "20", "--eval-every", "2", "--best-by", "accuracy", "--schedule", "constant", "--shortest", "3"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json config = read_json(run_ / "run.json");
  EXPECT_EQ(config["task"], "next-word");
  EXPECT_EQ(config["shortest"], 3);
  EXPECT_FALSE(config.contains("max-length")) << "an option of another task";
  EXPECT_EQ(config["resolved"]["generated"], true);
  EXPECT_EQ(config["resolved"]["metrics"][1]["name"], "accuracy");
  const std::vector<json> steps = records_of(run_, "step"), evaluations = records_of(run_, "evaluation");
  ASSERT_EQ(steps.size(), 20u);
  EXPECT_LT(steps.back()["loss"], 0.8 * steps.front()["loss"].get<double>());
  ASSERT_EQ(evaluations.size(), 10u);
  EXPECT_GT(evaluations.back()["accuracy"], evaluations.front()["accuracy"]);
  EXPECT_EQ(json::parse(run.output)["accuracy"], evaluations.back()["accuracy"]);
  EXPECT_THAT(run.errors, AllOf(HasSubstr("320 sentences"), HasSubstr("accuracy")));
  EXPECT_EQ(read_json(run_ / "best/config.json")["model_type"], "word_pairs");
}

TEST_F(SmallTasks, DefaultsAreThoseOfTheTask) {
  const ProgramRun run = train_words({"--steps", "1"});
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  const json config = read_json(run_ / "run.json");
  EXPECT_EQ(config["learning-rate"], 0.01);
  EXPECT_EQ(config["batch"], 16);
  EXPECT_THAT(config["program"]["changed"], Not(::testing::Contains("learning-rate")));
  const json step = records_of(run_, "step").at(0);
  EXPECT_EQ(step["sentences"], 16);
  EXPECT_GE(step["words"], 16 * 4);
  EXPECT_TRUE(step.contains("words_per_second"));
  EXPECT_FALSE(step.contains("tokens"));
}

TEST_F(SmallTasks, ARunGoesOnFromItsCheckpoint) {
  const Words few = {"--steps", "4", "--checkpoint-every", "2"}, more = {"--steps", "6", "--extend"};
  ASSERT_EQ(train_words(few).exit_code, 0);
  const ProgramRun extended = train_words(more);
  ASSERT_EQ(extended.exit_code, 0) << extended.errors;
  EXPECT_THAT(extended.errors, HasSubstr("extended from 4 steps to 6"));
  EXPECT_EQ(records_of(run_, "step").size(), 6u);
  write_file(sentences_, R"({"sentences": 322})");
  EXPECT_THAT(train_words({"--steps", "8", "--extend"}).errors, HasSubstr("its data differ from those that the run"));
}

TEST_F(SmallTasks, AModelOfARunIsEvaluatedAndExported) {
  ASSERT_EQ(train_words({"--steps", "4", "--checkpoint-every", "4"}).exit_code, 0);
  const ProgramRun scored =
      run_small({"eval", "--model", run_, "--data", some_sentences_, "--output", directory_ / "scored"});
  ASSERT_EQ(scored.exit_code, 0) << scored.errors;
  EXPECT_THAT(scored.errors, HasSubstr("predicted 40 sentences in"));
  EXPECT_EQ(json::parse(scored.output), read_json(run_ / "results.json"));
  const ProgramRun exported =
      run_small({"checkpoint", "export", run_, "--model", words_, "--output", directory_ / "exported"});
  ASSERT_EQ(exported.exit_code, 0) << exported.errors;
  EXPECT_EQ(read_file(directory_ / "exported/model.safetensors"), read_file(run_ / "last/model.safetensors"));
}

TEST_F(SmallTasks, AnOptionOfAnotherTaskSaysSo) {
  EXPECT_THAT(run_small({"train", "--model", images_, "--shortest", "3"}).errors,
              HasSubstr("train: --shortest belongs to --task next-word, and this is a run of image classification"));
  EXPECT_THAT(train_words({"--doc-stride", "3"}).errors,
              HasSubstr("--doc-stride belongs to --task question-answering, and"));
  EXPECT_THAT(train_words({"--max_length", "4"}).errors,
              HasSubstr("train: --max_length belongs to --task question-answering or language-modeling, and this is a "
                        "run of next words"));
  EXPECT_THAT(train_words({"--task", "chess"}).errors,
              HasSubstr("--task chess: expected question-answering, language-modeling, image-classification or "
                        "next-word"));
}

TEST_F(SmallTasks, HelpShowsTheOptionsOfTheTask) {
  const std::string help = run_small({"train", "--task", "next-word", "--help"}).output;
  EXPECT_THAT(help, AllOf(HasSubstr("--shortest N"), HasSubstr("Sentences:"), HasSubstr("--micro-batch N"),
                          HasSubstr("metric that selects the model in best/: loss, accuracy or"),
                          Not(HasSubstr("--doc-stride"))));
  EXPECT_THAT(run_small({"train", "--help"}).output, AllOf(HasSubstr("--doc-stride"), Not(HasSubstr("--shortest"))));
}

TEST_F(SmallTasks, ManualAndCompletionHaveTheOptionsOfAllTasks) {
  EXPECT_THAT(run_small({"help", "--man"}).output,
              AllOf(HasSubstr("With \\-\\-task next\\-word:\n.TP\n\\fB\\-\\-shortest\\fR \\fIN\\fR"),
                    HasSubstr("\\fB\\-\\-doc\\-stride\\fR")));
  const std::string script = run_small({"help", "--bash"}).output;
  EXPECT_THAT(script, AllOf(HasSubstr("--shortest "), HasSubstr("--doc-stride ")));
  EXPECT_THAT(script,
              HasSubstr("--task) values=\"question-answering language-modeling image-classification next-word\""));
}

TEST_F(SmallTasks, AConfigurationNamesItsTask) {
  ASSERT_EQ(train_words({"--steps", "1", "--shortest", "5"}).exit_code, 0);
  const ProgramRun again =
      run_small({"train", "--config", run_ / "run.json", "--output", directory_ / "again", "--steps", "2"});
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(read_json(directory_ / "again/run.json")["task"], "next-word");
  EXPECT_EQ(read_json(directory_ / "again/run.json")["shortest"], 5);
  write_file(directory_ / "mixed.json", R"({"task": "image-classification", "shortest": 3})");
  EXPECT_THAT(run_small({"train", "--config", directory_ / "mixed.json"}).errors,
              HasSubstr("shortest belongs to --task next-word, and this is a run of image classification"));
  write_file(directory_ / "mixed.json", R"({"task": "image-classification", "lora-rank": 3})");
  EXPECT_THAT(run_small({"train", "--config", directory_ / "mixed.json"}).errors,
              HasSubstr("lora-rank belongs to --task question-answering or language-modeling, and this is a run of"));
}

TEST_F(SmallTasks, ReportsAndPlansFollowTheTask) {
  ASSERT_EQ(train_words({"--steps", "2"}).exit_code, 0);
  const ProgramRun page = run_small({"report", run_, "--output", directory_ / "report.html"});
  ASSERT_EQ(page.exit_code, 0) << page.errors;
  const std::string html = read_file(directory_ / "report.html");
  EXPECT_THAT(html, AllOf(HasSubstr("Accuracy"), HasSubstr("words"), Not(HasSubstr("F1")), Not(HasSubstr("SQuAD"))));
  const ProgramRun of_others = run_mylos({"report", run_, "--output", directory_ / "other.html"});
  EXPECT_EQ(of_others.exit_code, 0) << of_others.errors;
  EXPECT_THAT(read_file(directory_ / "other.html"), HasSubstr("Accuracy")) << "by a program without this task";
  const ProgramRun watched = run_small({"watch", run_, "--once"});
  EXPECT_THAT(watched.output, AllOf(HasSubstr("words/s"), Not(HasSubstr("F1"))));
  const ProgramRun plan =
      run_small({"plan", "--model", words_, "--data", sentences_, "--gpu", "a100-40", "--gpus", "2", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.errors;
  const json planned = json::parse(plan.output);
  EXPECT_EQ(planned["data"], "320 sentences");
  EXPECT_TRUE(planned["modes"][0].contains("words_per_second"));
  EXPECT_FALSE(planned["modes"][0].contains("tokens_per_second"));
  EXPECT_THAT(run_small({"plan", "--model", words_, "--data", sentences_, "--gpu", "a100-40"}).output,
              AllOf(HasSubstr("words/s"), Not(HasSubstr("tokens/s"))));
}

TEST_F(SmallTasks, BenchmarksCountTheWorkOfTheTask) {
  const ProgramRun step = run_small(
      {"bench", "step", "--model", words_, "--data", sentences_, "--repeats", "1", "--gemm", "kokkos-kernels"});
  ASSERT_EQ(step.exit_code, 0) << step.errors;
  EXPECT_THAT(step.output, AllOf(HasSubstr("words/s"), Not(HasSubstr("nan")), Not(HasSubstr("tokens/s"))));
  const ProgramRun gemm = run_small({"bench", "gemm", "--task", "next-word"});
  EXPECT_EQ(gemm.exit_code, 2);
  EXPECT_THAT(gemm.errors, HasSubstr("bench gemm needs --model: no model for next words is known by its sizes"));
  EXPECT_THAT(run_small({"bench", "gemm", "--task", "next-word", "--shapes", "minilm"}).errors,
              HasSubstr("bench does not have --shapes"));
}

TEST_F(SmallTasks, ARunOfAnotherTaskIsNotThisRun) {
  ASSERT_EQ(train_words({"--steps", "1"}).exit_code, 0);
  const TemporaryDirectory bert;
  write_tiny_model(bert / "model");
  write_file(bert / "train.json", tiny_questions());
  const Words questions = {
      "train",        "--model", bert / "model", "--train", bert / "train.json", "--max-length", "60",
      "--doc-stride", "20",      "--steps",      "1",       "--output"};
  const ProgramRun other = run_small(joined(questions, {run_}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors,
              HasSubstr("contains a finished run with other options: task next-word, now question-answering;"));
  const ProgramRun own = run_small(joined(questions, {directory_ / "own"}));
  ASSERT_EQ(own.exit_code, 0) << own.errors;
  EXPECT_EQ(read_json(directory_ / "own/run.json")["task"], "question-answering") << "trains as before";
}

TEST_F(SmallTasks, AModelOfAnotherTaskIsRefused) {
  const Words train = {"--train", sentences_, "--output", run_};
  EXPECT_THAT(run_small(joined({"train", "--task", "next-word", "--model", images_}, train)).errors,
              HasSubstr("is a model for image classification (--task image-classification), but this is a run of next "
                        "words (--task next-word)"));
  EXPECT_THAT(run_small({"ask", "--model", words_, "--context", sentences_, "who?"}).errors,
              HasSubstr("is a model for next words (--task next-word), but this is a run of question answering (--task "
                        "question-answering)"));
  const ProgramRun plan = run_small({"plan", "--task", "next-word", "--model", "bert-base"});
  EXPECT_EQ(plan.exit_code, 2);
  EXPECT_THAT(
      plan.errors,
      HasSubstr("--model bert-base is a model for question answering (--task question-answering), but this is a "
                "run of next words (--task next-word); models and tasks go together in these pairs: bert with "
                "question-answering, llama with language-modeling, mistral with language-modeling, qwen2 with "
                "language-modeling, qwen3 with language-modeling, resnet with image-classification, word_pairs with "
                "next-word\n"));
}

TEST_F(SmallTasks, WhatATaskHasNotIsSaid) {
  EXPECT_THAT(run_small({"prepare", "--model", words_, "--data", sentences_, "--output", directory_ / "s.h5"}).errors,
              HasSubstr("prepare: next words has nothing to prepare"));
  ASSERT_EQ(train_words({"--steps", "1"}).exit_code, 0);
  const ProgramRun report = run_small({"report", run_, "--output", directory_ / "report.html", "--between", "1,9"});
  EXPECT_EQ(report.exit_code, 2);
  EXPECT_THAT(report.errors, HasSubstr("--between compares answers"));
}

}  // namespace
}  // namespace mylos::tests
