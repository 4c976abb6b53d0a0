#include "tasks/question_answering/run_answers.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::tasks {
namespace {

using ::testing::HasSubstr;

/// Four questions about one text, the last without an answer.
constexpr const char* data = R"({"version": "v2.0", "data": [{"title": "t", "paragraphs": [{
  "context": "the red fox runs far.", "qas": [
    {"id": "a", "question": "what runs?", "answers": [{"text": "the red fox", "answer_start": 0}]},
    {"id": "b", "question": "how far?", "answers": [{"text": "far", "answer_start": 17}]},
    {"id": "c", "question": "which fox?", "answers": [{"text": "red", "answer_start": 4}]},
    {"id": "d", "question": "who sleeps?", "answers": [], "is_impossible": true}]}]}]})";

class RunAnswers : public testing::Test {
 protected:
  void SetUp() override {
    tests::write_file(directory_ / "dev.json", data);
    run_.directory = directory_.path();
    run_.run = {{"dev", (directory_ / "dev.json").string()}};
  }

  tests::TemporaryDirectory directory_;
  train::RunRecord run_;
};

TEST_F(RunAnswers, AreScoredAsTheOfficialScriptDoes) {
  const Questions questions = read_questions(run_);
  EXPECT_EQ(questions.problem, "");
  EXPECT_EQ(questions.f1("a", "red fox"), 1.0);  // articles do not count
  EXPECT_DOUBLE_EQ(*questions.f1("a", "fox"), 2.0 / 3.0);
  EXPECT_EQ(questions.f1("b", ""), 0.0);
  EXPECT_EQ(questions.f1("d", ""), 1.0);
  EXPECT_EQ(questions.f1("d", "far"), 0.0);
  EXPECT_EQ(questions.f1("none", "far"), std::nullopt);
}

TEST_F(RunAnswers, QuestionsAreThoseThatTheRunTook) {
  run_.run["dev-limit"] = 2u;
  EXPECT_NE(read_questions(run_).find("b"), nullptr);
  EXPECT_EQ(read_questions(run_).find("c"), nullptr);
}

TEST_F(RunAnswers, SayWhyQuestionsAreNotThere) {
  run_.run["dev"] = nullptr;
  EXPECT_THAT(read_questions(run_).problem, HasSubstr("names no evaluation data"));
  run_.run["dev"] = (directory_ / "gone.json").string();
  EXPECT_THAT(read_questions(run_).problem, HasSubstr("gone.json no longer exists"));
  tests::write_file(directory_ / "gone.json", "{");
  EXPECT_THAT(read_questions(run_).problem, HasSubstr("gone.json: not JSON"));
  run_.run["dev"] = "/dev/zero";  // used to take all memory, and a pipe to wait forever
  EXPECT_EQ(read_questions(run_).problem, "/dev/zero is not a regular file and is not read");
}

TEST_F(RunAnswers, ChangesAreLossesThenGainsThenTheRest) {
  const Questions questions = read_questions(run_);
  const Answers before = {{"a", {"red fox", 0.5}}, {"b", {"runs", 0.5}}, {"c", {"fox", 0.5}}, {"d", {"", 0.5}}};
  const Answers after = {{"a", {"fox", 0.9}}, {"b", {"far", 0.5}}, {"c", {"runs", 0.5}}, {"d", {"", 0.1}}};
  const auto changes = changed_answers(before, after, questions);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].id, "a");
  EXPECT_NEAR(changes[0].gain(), -1.0 / 3.0, 1e-12);
  EXPECT_EQ(changes[1].id, "b");
  EXPECT_EQ(changes[1].gain(), 1.0);
  EXPECT_EQ(changes[2].id, "c");
  EXPECT_EQ(changes[2].gain(), 0.0);
}

TEST_F(RunAnswers, AreComparedWhereBothAnswered) {
  const Answers before = {{"a", {"red fox", 0.5}}, {"b", {"runs", 0.5}}};
  const Answers after = {{"a", {"fox", 0.9}}, {"c", {"runs", 0.5}}, {"d", {"", 0.1}}};
  EXPECT_EQ(common_questions(before, after), 1u);
  EXPECT_EQ(common_questions(before, {}), 0u);
}

TEST_F(RunAnswers, TheSurestOfTheWorstComesFirst) {
  const Questions questions = read_questions(run_);
  const Answers answers = {{"a", {"fox", 0.99}}, {"b", {"runs", 0.4}}, {"c", {"runs", 0.8}}, {"d", {"", 0.9}}};
  const auto wrong = worst_answers(answers, questions);
  ASSERT_EQ(wrong.size(), 3u);
  EXPECT_EQ(wrong[0].id, "c");
  EXPECT_EQ(wrong[1].id, "b");
  EXPECT_EQ(wrong[2].id, "a");
}

TEST_F(RunAnswers, FinalAnswersAreTheBestEvaluations) {
  EXPECT_EQ(read_final_answers(run_), std::nullopt);
  tests::write_file(directory_ / "predictions.json", R"({"a": "fox"})");
  EXPECT_FALSE(read_final_answers(run_)->has_probabilities);
  EXPECT_EQ(read_final_answers(run_)->answers.at("a").text, "fox");
  tests::write_file(directory_ / "evaluations/1000.json", R"({"a": ["red fox", 0.5]})");
  tests::write_file(directory_ / "evaluations/2000.json", R"({"a": ["far", 0.5]})");
  run_.evaluations = {{{"step", 1000}, {"best", true}}, {{"step", 2000}, {"best", false}}};
  const auto answers = read_final_answers(run_);
  EXPECT_EQ(answers->origin, "step 1,000, the best evaluation");
  EXPECT_EQ(answers->answers.at("a").text, "red fox");
}

}  // namespace
}  // namespace mylos::tasks
