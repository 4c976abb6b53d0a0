#include "app/program/model_argument.hpp"

#include "tests/app/tiny_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

/// The settings that ask and eval take from the run that --model names.
namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

class ModelArgument : public EvaluatedRun {};

TEST_F(ModelArgument, EvalAndAskTakeTheWindowsOfARun) {
  ASSERT_EQ(train_here({"--steps", "3"}).exit_code, 0);
  const fs::path output = directory_ / "eval", context = directory_ / "context.txt";
  const Words words = {"eval", "--model", run_, "--data", dev_, "--output", output, "--gemm", default_provider()};
  const ProgramRun eval = run_mylos(words);
  ASSERT_EQ(eval.exit_code, 0) << eval.errors;
  EXPECT_THAT(eval.errors,
              HasSubstr(run_.string() + ": options from its run.json: --max-length 60 --doc-stride 20 --long split "
                                        "--n-best 20 --max-answer-length 30 --null-threshold 0.0\n"));
  EXPECT_EQ(read_json(output / "evaluation.json")["max-length"], 60);
  EXPECT_EQ(read_file(output / "nbest_predictions.json"), read_file(run_ / "nbest_predictions.json"));
  Words given = words;
  given.insert(given.end(), {"--max-length", "64"});
  const ProgramRun longer = run_mylos(given);
  EXPECT_THAT(longer.errors, HasSubstr(": options from its run.json: --doc-stride 20 --long split --n-best 20 "));
  EXPECT_EQ(read_json(output / "evaluation.json")["max-length"], 64);
  given.back() = "20";
  const ProgramRun refused = run_mylos(given);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("--doc-stride 20: expected less than --max-length, 20"));
  write_file(context, "the red fox runs far.");
  const ProgramRun ask = run_mylos({"ask", "--model", run_, "--context", context, "who runs?"});
  EXPECT_EQ(ask.exit_code, 0) << ask.errors;
  EXPECT_THAT(ask.errors,
              HasSubstr(": options from its run.json: --squad 1.1 --max-length 60 --doc-stride 20 --long split "
                        "--max-answer-length 30\n"));
  const ProgramRun last = run_mylos({"ask", "--model", run_ / "last/", "--context", context, "who runs?"});
  EXPECT_THAT(last.errors,
              HasSubstr(": options from its run.json: --squad 1.1 --max-length 60 --doc-stride 20 --long split "
                        "--max-answer-length 30\n"));
}

TEST_F(ModelArgument, AMissingModelIsReportedBeforeItsSettings) {
  for (const char* command : {"eval", "ask"}) {
    Words words = {command, "--model", directory_ / "absent", "--max-length", "64"};
    for (const std::string& word : std::string(command) == "eval"
                                       ? Words{"--data", dev_, "--output", directory_ / "eval"}
                                       : Words{"--context", dev_, "who runs?"}) {
      words.push_back(word);
    }
    const ProgramRun run = run_mylos(words);
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.errors, HasSubstr("no directory " + (directory_ / "absent").string() + "\n")) << command;
  }
}

TEST_F(ModelArgument, AskSaysThatThereIsNoAnswer) {
  json document = json::parse(tiny_questions());
  document["version"] = "v2.0";
  for (json& paragraph : document["data"][0]["paragraphs"]) {
    for (json& question : paragraph["qas"]) {
      question["answers"] = json::array();
      question["is_impossible"] = true;
    }
  }
  write_file(train_, document.dump());
  write_file(dev_, document.dump());
  ASSERT_EQ(train_here({"--steps", "40", "--lr", "1e-2"}).exit_code, 0);
  const fs::path context = directory_ / "context.txt";
  write_file(context, "the red fox runs far.");
  const auto ask = [&](const fs::path& model, const Words& more = {}) {
    Words words = {"ask", "--model", model, "--context", context};
    words.insert(words.end(), more.begin(), more.end());
    words.emplace_back("who runs?");
    return run_mylos(words);
  };
  EXPECT_THAT(ask(run_).output, StartsWith("who runs?\n  no answer  (score 0."));
  const json answer = json::parse(ask(run_, {"--json"}).output);
  EXPECT_EQ(answer["answer"], "");
  EXPECT_EQ(answer["end"], 0);
  EXPECT_EQ(answer["context"], "");
  EXPECT_GT(answer["score"].get<double>(), 0.1);
  EXPECT_THAT(ask(run_, {"--squad", "1.1"}).output, Not(HasSubstr("no answer")));
  EXPECT_THAT(ask(run_ / "best").output, HasSubstr("no answer"));
  // In another directory, the model does not tell what it was trained on.
  const fs::path copied = directory_ / "copied";
  fs::copy(run_ / "best", copied);
  const Words windows = {"--max-length", "60", "--doc-stride", "20"}, rules = {"--squad", "2.0"};
  EXPECT_THAT(ask(copied, windows).output, Not(HasSubstr("no answer")));
  EXPECT_THAT(ask(copied, {windows[0], windows[1], windows[2], windows[3], rules[0], rules[1]}).output,
              HasSubstr("no answer"));
}

}  // namespace
}  // namespace mylos::tests
