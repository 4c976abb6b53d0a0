#include "data/answer_files.hpp"

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
  EXPECT_EQ(nbest_json(two_questions(), two_answers()),
            "{\n    \"b\": [\n        {\n            \"start_logit\": 1.5,\n"
            "            \"end_logit\": 0.10000000149011612,\n            \"text\": \"\\u00e9\",\n"
            "            \"probability\": 1.0\n        }\n    ],\n    \"a\": []\n}\n");
}

TEST(AnswerFiles, NullOddsAreOnlyOfAnswersThatHaveThem) {
  EXPECT_EQ(null_odds_json(two_questions(), two_answers()), "{\n    \"b\": -0.5\n}\n");
}

TEST(AnswerFiles, EveryQuestionNeedsAnAnswer) {
  EXPECT_THAT(tests::error_of([] { predictions_json(two_questions(), {}); }), HasSubstr("2 questions but 0 answers"));
}

}  // namespace
}  // namespace mylos::data
