#include "data/squad/squad.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/files/hdf5_file.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_of;

/// Returns a nested file with one paragraph, "Alpha beta", and these questions.
std::string nested(std::string_view questions, std::string_view version = R"("version": "1.1", )") {
  return fmt::format(R"({{{}"data": [{{"title": "t", "paragraphs": [{{"context": "Alpha beta", "qas": [{}]}}]}}]}})",
                     version, questions);
}

constexpr std::string_view good = R"({"id": "a", "question": "q", "answers": [{"text": "beta", "answer_start": 6}]})";

std::string squad_error(std::string_view text) {
  return error_of([&] { parse_squad(text, "f.json"); });
}

TEST(Squad, ReadsTheNestedForm) {
  const SquadDataset dataset = parse_squad(nested(good), "f.json");
  EXPECT_EQ(dataset.version, SquadVersion::v1_1);
  EXPECT_THAT(dataset.contexts, ElementsAre("Alpha beta"));
  ASSERT_EQ(dataset.questions.size(), 1U);
  const SquadQuestion& question = dataset.questions[0];
  EXPECT_EQ(question.id, "a");
  EXPECT_EQ(question.question, "q");
  EXPECT_TRUE(question.has_answers_key);
  EXPECT_FALSE(question.impossible);
  ASSERT_EQ(question.answers.size(), 1U);
  EXPECT_EQ(question.answers[0].text, "beta");
  EXPECT_EQ(question.answers[0].start, 6U);
  EXPECT_TRUE(question.answers[0].aligned);
}

constexpr std::string_view flat_a =
    R"({"id": "a", "context": "Alpha beta", "question": "q", "answers": {"text": ["Alpha"], "answer_start": [0]}})";
constexpr std::string_view flat_b =
    R"({"id": "b", "context": "Alpha beta", "question": "r", "answers": {"text": [], "answer_start": []}})";
constexpr std::string_view flat_c = R"({"id": "c", "context": "Other", "question": "s"})";

void expect_flat(const SquadDataset& dataset) {
  EXPECT_EQ(dataset.version, SquadVersion::v2_0);
  EXPECT_THAT(dataset.contexts, ElementsAre("Alpha beta", "Other"));
  ASSERT_EQ(dataset.questions.size(), 3U);
  EXPECT_EQ(dataset.questions[0].answers.at(0).text, "Alpha");
  EXPECT_TRUE(dataset.questions[1].has_answers_key);
  EXPECT_TRUE(dataset.questions[1].answers.empty());
  EXPECT_EQ(dataset.questions[1].context, 0U);
  EXPECT_FALSE(dataset.questions[2].has_answers_key);
  EXPECT_EQ(dataset.questions[2].context, 1U);
}

TEST(Squad, ReadsTheFlatForms) {
  expect_flat(parse_squad(fmt::format(R"({{"data": [{}, {}, {}]}})", flat_a, flat_b, flat_c), "f.json"));
  expect_flat(parse_squad(fmt::format("{}\n{}\r\n\n{}\n", flat_a, flat_b, flat_c), "f.jsonl"));
  EXPECT_EQ(parse_squad(flat_a, "f.jsonl").questions.size(), 1U);
  EXPECT_EQ(parse_squad(std::string(flat_a) + "\n", "f.jsonl").questions.size(), 1U);
}

TEST(Squad, WholeNumbersAreIdsAndKeepTheirDigits) {
  const auto row = [](std::string_view id) {
    return fmt::format(R"({{"id": {}, "context": "Alpha beta", "question": "q"}})", id);
  };
  const auto id = [](const std::string& text) { return parse_squad(text, "f.json").questions.back().id; };
  for (const std::string_view digits :
       {"0", "262", "-3", "9223372036854775808", "18446744073709551615", "-9223372036854775808"}) {
    EXPECT_EQ(id(nested(fmt::format(R"({{"id": {}, "question": "q"}})", digits))), digits);
    EXPECT_EQ(id(fmt::format(R"({{"data": [{}]}})", row(digits))), digits);
    EXPECT_EQ(id(row(R"("a")") + "\n" + row(digits) + "\n"), digits);
  }
}

TEST(Squad, OtherNumbersAreNoIds) {
  for (const auto& [typed, shown] : std::vector<std::pair<std::string, std::string>>{
           {"1.5", "1.5"}, {"1.0", "1.0"}, {"1e3", "1000.0"}, {"18446744073709551616", "1.8446744073709552e+19"}}) {
    const std::string problem = "expected a string or a whole number of at most 64 bits, found " + shown;
    EXPECT_EQ(squad_error(nested(fmt::format(R"({{"id": {}, "question": "q"}})", typed))),
              "f.json: data[0].paragraphs[0].qas[0].id: " + problem);
    EXPECT_EQ(squad_error(fmt::format("{}\n{{\"id\": {}, \"context\": \"x\", \"question\": \"q\"}}", flat_a, typed)),
              "f.json: line 2: id: " + problem);
  }
  EXPECT_THAT(squad_error(nested(R"({"id": 5, "question": "q"}, {"id": "5", "question": "r"})")),
              HasSubstr("id '5' belongs to question 1 and again to question 2"));
}

TEST(Squad, TheWholeFileJudgesTheVersion) {
  const auto version = [](std::string_view text) { return parse_squad(text, "f.json").version; };
  EXPECT_EQ(version(nested(good, "")), SquadVersion::v1_1);
  EXPECT_EQ(version(nested(good, R"("version": "v2.0", )")), SquadVersion::v2_0);
  EXPECT_EQ(version(nested(good, R"("version": "2.0", )")), SquadVersion::v2_0);
  EXPECT_EQ(version(nested(good, R"("version": 2.0, )")), SquadVersion::v2_0);
  const std::string with_good = std::string(good) + ", ";
  EXPECT_EQ(version(nested(with_good + R"({"id": "b", "question": "q", "answers": []})")), SquadVersion::v2_0);
  EXPECT_EQ(version(nested(with_good + R"({"id": "b", "question": "q", "is_impossible": true, "answers": []})")),
            SquadVersion::v2_0);
  EXPECT_EQ(version(nested(with_good + R"({"id": "b", "question": "q", "is_impossible": false})")), SquadVersion::v1_1);
  EXPECT_EQ(parse_squad_version("1.1"), SquadVersion::v1_1);
  EXPECT_EQ(parse_squad_version("2.0"), SquadVersion::v2_0);
  EXPECT_THAT(error_of([] { parse_squad_version("3"); }), HasSubstr("the SQuAD version is 1.1 or 2.0, not '3'"));
}

TEST(Squad, LimitsQuestionsButNotTheVersion) {
  SquadDataset dataset = parse_squad(fmt::format("{}\n{}\n", flat_a, flat_b), "f.jsonl");
  limit_questions(dataset, 5);
  EXPECT_EQ(dataset.questions.size(), 2U);
  limit_questions(dataset, 1);
  EXPECT_EQ(dataset.questions.size(), 1U);
  EXPECT_EQ(dataset.version, SquadVersion::v2_0);
}

TEST(Squad, CountsAnswersThatDoNotStandWhereTheySay) {
  const SquadDataset dataset =
      parse_squad(nested(R"({"id": "a", "question": "q", "answers": [{"text": "beta", "answer_start": 5},
                                                        {"text": "beta", "answer_start": 6},
                                                        {"text": "", "answer_start": 0},
                                                        {"text": "beta", "answer_start": 900000000000}]})"),
                  "f.json");
  const MisplacedAnswers misplaced = find_misplaced_answers(dataset);
  EXPECT_EQ(misplaced.count, 3U);
  EXPECT_EQ(misplaced.first, "question a: the answer is 'beta' but the context has ' bet' at answer_start 5");
  EXPECT_TRUE(dataset.questions[0].answers[1].aligned);
  const SquadDataset empty = parse_squad(nested(R"({"id": "a", "question": "q",
                                                    "answers": [{"text": "", "answer_start": 0}]})"),
                                         "f.json");
  EXPECT_EQ(find_misplaced_answers(empty).first, "question a: an answer's text is empty");
  const SquadDataset nowhere = parse_squad(nested(R"({"id": "a", "question": "q",
                                                      "answers": [{"text": "beta", "answer_start": -1}]})"),
                                           "f.json");
  EXPECT_EQ(find_misplaced_answers(nowhere).first, "question a: answer_start of 'beta' is below 0");
}

TEST(Squad, AnswersNearTheirTextAreMovedThere) {
  const auto answer = [](int start) { return fmt::format(R"({{"text": "beta", "answer_start": {}}})", start); };
  std::string answers = answer(6);
  for (const int start : {3, 4, 5, 7, 8, 9, -1, -500}) answers += "," + answer(start);
  SquadDataset dataset = parse_squad(nested(R"({"id": "a", "question": "q", "answers": [)" + answers + "]}"), "f.json");
  EXPECT_EQ(repair_offsets(dataset), 4U);
  std::vector<std::size_t> starts;
  for (const SquadAnswer& each : dataset.questions[0].answers) {
    if (each.aligned) starts.push_back(each.start);
  }
  EXPECT_EQ(starts, std::vector<std::size_t>(5, 6));
  EXPECT_EQ(repair_offsets(dataset), 0U);
}

TEST(Squad, OffsetsCountCodePoints) {
  const auto row = R"({"id": "a", "context": "😀é 東京", "question": "q",
                       "answers": {"text": ["東京"], "answer_start": [3]}})";
  EXPECT_EQ(find_misplaced_answers(parse_squad(row, "f.json")).count, 0U);
}

TEST(Squad, RefusesBrokenFilesAndSaysWhere) {
  EXPECT_THAT(squad_error("[]"), HasSubstr("f.json: expected object, found list"));
  EXPECT_THAT(squad_error("{}"), HasSubstr("f.json: not in SQuAD format: expected 'data'"));
  EXPECT_EQ(squad_error(R"({"id": "q", "window": 0, "input_ids": [2, 3]})"),
            "f.json: a window that `mylos prepare` wrote for people; " + prepare_command() +
                " writes a file to train and evaluate on");
  EXPECT_EQ(squad_error(R"({"data": 1})"), "f.json: data: expected list, found number");
  EXPECT_EQ(squad_error(R"({"data": []})"), "f.json: has no questions");
  EXPECT_THAT(squad_error(R"({"data": [7]})"), HasSubstr("f.json: data[0]: expected object, found number"));
  EXPECT_THAT(squad_error(R"({"data": [{"title": "x"}]})"), HasSubstr("f.json: data[0]: not in SQuAD format"));
  EXPECT_THAT(squad_error(R"({"version": [], "data": []})"), HasSubstr("f.json: version: expected string"));
  EXPECT_THAT(squad_error(R"({"data": [{"paragraphs": [{"qas": []}]}]})"),
              HasSubstr("f.json: data[0].paragraphs[0]: the key 'context' is missing"));
  EXPECT_THAT(squad_error(R"({"data": [{"paragraphs": [{"context": "x"}]}]})"), HasSubstr("the key 'qas' is missing"));
  EXPECT_THAT(squad_error(std::string(flat_a) + "\n" + R"({"id": "b", "context": 3, "question": "q"})"),
              HasSubstr("f.json: line 2: context: expected string, found number"));
  EXPECT_THAT(squad_error(std::string(flat_a) + "\n{\"id\": \"b\","), HasSubstr("f.json: line 2: not JSON at line 1"));
}

TEST(Squad, RefusesBrokenQuestionsAndSaysWhere) {
  const auto question_error = [](std::string_view question) { return squad_error(nested(question)); };
  EXPECT_THAT(question_error(R"({"question": "q"})"), HasSubstr("qas[0]: the key 'id' is missing"));
  EXPECT_THAT(question_error(R"({"id": [5], "question": "q"})"),
              HasSubstr("qas[0].id: expected string or whole number, found list"));
  EXPECT_THAT(question_error(R"({"id": "a"})"), HasSubstr("the key 'question' is missing"));
  EXPECT_THAT(question_error(R"({"id": "a", "question": "q", "is_impossible": 1})"),
              HasSubstr("is_impossible: expected boolean"));
  EXPECT_EQ(question_error(R"({"id": "a", "question": "q", "answers": "beta"})"),
            "f.json: data[0].paragraphs[0].qas[0].answers: expected list, found string");
  EXPECT_THAT(question_error(R"({"id": "a", "question": "q", "answers": [{"text": "x"}]})"),
              HasSubstr("answers[0]: the key 'answer_start' is missing"));
  EXPECT_THAT(question_error(R"({"id": "a", "question": "q", "answers": [{"text": "x", "answer_start": 1.5}]})"),
              HasSubstr("answers[0].answer_start: expected a whole number that is not negative, found 1.5"));
  EXPECT_THAT(question_error(R"({"id": "a", "question": "q", "answers": {"text": ["x"], "answer_start": []}})"),
              HasSubstr("answers: 'text' has 1 entries and 'answer_start' 0"));
  EXPECT_THAT(question_error(R"({"id": "a", "question": "q", "answers": {"text": [1], "answer_start": [0]}})"),
              HasSubstr("answers.text[0]: expected string"));
  EXPECT_THAT(question_error(std::string(good) + ", " + std::string(good)),
              HasSubstr("f.json: id 'a' belongs to question 1 and again to question 2"));
}

}  // namespace
}  // namespace mylos::data
