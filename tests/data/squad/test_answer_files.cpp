#include "data/squad/answer_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::HasSubstr;

std::vector<SquadQuestion> two_questions() { return {{"b", 0, "?", {}, true, false}, {"a", 0, "?", {}, true, false}}; }

std::vector<Answer> two_answers() { return {{"é", {0, 1}, 1.0F, {{"é", {0, 1}, 1.5F, 0.1F, 1.0F}}, -0.5F}, {}}; }

TEST(AnswerFiles, PredictionsStandInTheOrderOfTheQuestions) {
  EXPECT_EQ(predictions_json(two_questions(), two_answers()), "{\n    \"b\": \"\\u00e9\",\n    \"a\": \"\"\n}\n");
}

TEST(AnswerFiles, CandidatesHaveRunQasKeys) {
  std::string nbest;
  nbest_json(two_questions(), two_answers(), [&](std::string_view piece) { nbest += piece; });
  EXPECT_EQ(nbest,
            "{\n    \"b\": [\n        {\n            \"start_logit\": 1.5,\n"
            "            \"end_logit\": 0.10000000149011612,\n            \"text\": \"\\u00e9\",\n"
            "            \"probability\": 1.0\n        }\n    ],\n    \"a\": []\n}\n");
}

TEST(AnswerFiles, NullOddsAreOnlyOfAnswersThatHaveThem) {
  EXPECT_EQ(null_odds_json(two_questions(), two_answers()), "{\n    \"b\": -0.5\n}\n");
}

TEST(AnswerFiles, ShortAnswersAreReadBack) {
  const tests::TemporaryDirectory directory;
  const std::string text = short_answers_json(two_questions(), two_answers());
  EXPECT_EQ(text, "{\"b\": [\"é\", 1],\n\"a\": [\"\", 0]}\n");
  tests::write_file(directory / "10.json", text);
  const auto answers = read_short_answers(directory / "10.json");
  EXPECT_EQ(answers.at("b").text, "é");
  EXPECT_EQ(answers.at("b").probability, 1.0);
  EXPECT_EQ(answers.at("a").text, "");
}

TEST(AnswerFiles, ShortAnswersNameWhatIsWrong) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "1.json", R"({"q": ["a"]})");
  EXPECT_THAT(tests::error_of([&] { read_short_answers(directory / "1.json"); }),
              HasSubstr("1.json: q: expected a text and a probability"));
  tests::write_file(directory / "1.json", R"({"q": ["a", "b"]})");
  EXPECT_THAT(tests::error_of([&] { read_short_answers(directory / "1.json"); }),
              HasSubstr("q[1]: expected number, found string"));
}

TEST(AnswerFiles, EveryQuestionNeedsAnAnswer) {
  EXPECT_THAT(tests::error_of([] { predictions_json(two_questions(), {}); }), HasSubstr("2 questions but 0 answers"));
}

}  // namespace
}  // namespace mylos::data
