#include "data/squad/squad_metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "core/base/text/unicode.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::error_of;

/// Returns a data set of questions with these answers, on an irrelevant context.
SquadDataset dataset_of(const nlohmann::json& questions) {
  SquadDataset dataset;
  dataset.contexts = {""};
  for (const auto& row : questions) {
    SquadQuestion question;
    question.id = row.at("id");
    question.has_answers_key = row.contains("answers");
    if (question.has_answers_key) {
      for (const auto& answer : row["answers"]) question.answers.push_back({answer.at("text"), 0, false});
    }
    dataset.questions.push_back(std::move(question));
  }
  return dataset;
}

SquadDataset one_question(const std::string& gold) {
  SquadDataset dataset;
  dataset.contexts = {""};
  dataset.questions = {{"q", 0, "?", {{gold, 0, false}}, true, false}};
  return dataset;
}

TEST(SquadMetrics, PairsScoreAsInTheOfficialScripts) {
  for (const auto& row : tests::golden_lines("answer_pairs.jsonl")) {
    SCOPED_TRACE(row.dump());
    const SquadDataset dataset = one_question(row[0]);
    const Predictions predictions = {{"q", row[1]}};
    const OrderedJson v1 = score_v1(dataset, predictions).values;
    EXPECT_EQ(v1.at("exact_match"), 100.0 * row[4].get<double>());
    EXPECT_EQ(v1.at("f1"), 100.0 * row[5].get<double>());
    // v2.0 drops gold answers that normalise to an empty text and then expects an empty prediction.
    const bool is_empty = row[2].get<std::string>().empty();
    const OrderedJson v2 = score_v2(dataset, predictions).values;
    EXPECT_EQ(v2.at("exact"), is_empty ? (row[3] == "" ? 100.0 : 0.0) : 100.0 * row[6].get<double>());
    EXPECT_EQ(v2.at("f1"), is_empty ? (row[3] == "" ? 100.0 : 0.0) : 100.0 * row[7].get<double>());
  }
}

TEST(SquadMetrics, CasesPrintWhatTheOfficialScriptsPrint) {
  const auto cases = tests::golden_lines("score_cases.jsonl");
  ASSERT_GE(cases.size(), 30U);
  for (const auto& row : cases) {
    SCOPED_TRACE(row.dump());
    const auto predictions = parse_predictions(row.at("predictions").dump(), "predictions.json");
    const SquadDataset dataset = dataset_of(row.at("questions"));
    std::optional<NoAnswerScores> no_answer;
    if (row.contains("na_probs")) no_answer = parse_no_answer_scores(row.at("na_probs").dump(), "na_probs.json");
    const SquadScore score = score_v2(dataset, predictions, no_answer ? &*no_answer : nullptr, row.at("threshold"));
    EXPECT_EQ(official_text(score, SquadVersion::v2_0), row.at("v2").get<std::string>());
    if (row.at("v1").is_null()) continue;
    SquadDataset answered = dataset;
    std::erase_if(answered.questions, [](const SquadQuestion& question) { return question.answers.empty(); });
    EXPECT_EQ(official_text(score_v1(answered, predictions), SquadVersion::v1_1), row.at("v1").get<std::string>());
  }
}

/// Returns the first `count` words, including the space after the last one.
std::string first_words(const std::string& text, std::size_t count) {
  std::size_t end = text.find(' ');
  for (std::size_t word = 1; word < count && end != std::string::npos; ++word) end = text.find(' ', end + 1);
  return text.substr(0, end);
}

/// Returns the predictions that squad_scores.jsonl names: the gold answers, empty ones, the first words of each
/// context, or a published file.
Predictions predictions_named(const std::string& name, const SquadDataset& dataset) {
  if (name.ends_with(".json")) return read_predictions(tests::shared_data() / name);
  Predictions predictions;
  for (const SquadQuestion& question : dataset.questions) {
    std::string text;
    if (name == "gold" && !question.answers.empty()) text = question.answers[0].text;
    if (name == "context") text = first_words(dataset.contexts[question.context], 12);
    predictions.emplace(question.id, text);
  }
  return predictions;
}

/// Computes the probabilities that lab/record/metrics.py derives from the ids.
NoAnswerScores made_up_probabilities(const SquadDataset& dataset) {
  NoAnswerScores scores;
  for (const SquadQuestion& question : dataset.questions) {
    tests::Digest digest;
    for (const char32_t c : decode_utf8(question.id)) digest.add(c);
    const double value = static_cast<double>(std::stoull(digest.hexadecimal(), nullptr, 16) % 997) / 997.0;
    scores.in_order.emplace_back(question.id, value);
    scores.by_id.emplace(question.id, value);
  }
  return scores;
}

/// Compares the scores of the recorded files that are in the tree, or of those that are not.
void compare_scores(bool in_tree) {
  const auto rows = tests::golden_lines_of(in_tree, "squad_scores.jsonl");
  ASSERT_EQ(rows.size(), in_tree ? 6U : 9U);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.dump());
    const auto path = tests::recorded_questions(row.at("data"));
    if (!in_tree && !std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent (MYLOS_DATA)";
    const SquadDataset dataset = read_squad(path);
    const auto predictions = predictions_named(row.at("predictions"), dataset);
    std::string text;
    if (dataset.version == SquadVersion::v1_1) {
      text = official_text(score_v1(dataset, predictions), dataset.version);
    } else if (row.contains("threshold")) {
      const NoAnswerScores no_answer = made_up_probabilities(dataset);
      text = official_text(score_v2(dataset, predictions, &no_answer, row.at("threshold")), dataset.version);
    } else {
      text = official_text(score_v2(dataset, predictions), dataset.version);
    }
    EXPECT_EQ(text, row.at("text").get<std::string>());
  }
}

TEST(SquadMetrics, ExamplesScoreToTheLastDigit) { compare_scores(true); }
TEST(SquadMetrics, PublishedPredictionsScoreToTheLastDigit) { compare_scores(false); }

const nlohmann::json fox_and_cat =
    nlohmann::json::parse(R"([{"id": "q", "answers": [{"text": "fox"}]}, {"id": "r", "answers": [{"text": "cat"}]}])");

TEST(SquadMetrics, MissingPredictionsCountIn11AndShrink20) {
  const SquadDataset dataset = dataset_of(fox_and_cat);
  const SquadScore v1 = score_v1(dataset, {{"q", "fox"}});
  EXPECT_EQ(v1.values.at("exact_match"), 50.0);
  EXPECT_THAT(v1.missing, ElementsAre("r"));
  const SquadScore v2 = score_v2(dataset, {{"q", "fox"}, {"unknown", "x"}});
  EXPECT_EQ(v2.values.at("exact"), 100.0);
  EXPECT_EQ(v2.values.at("total"), 1);
  EXPECT_EQ(v2.values.at("HasAns_total"), 1);
  EXPECT_FALSE(v2.values.contains("NoAns_total"));
  EXPECT_THAT(v2.missing, ElementsAre("r"));
}

TEST(SquadMetrics, EqualNoAnswerScoresAreTakenInTheFilesOrder) {
  const SquadDataset dataset =
      dataset_of(nlohmann::json::parse(R"([{"id": "q", "answers": [{"text": "fox"}]}, {"id": "r", "answers": []}])"));
  const Predictions predictions = {{"q", "fox"}, {"r", "wrong"}};
  const auto best = [&](std::string_view file) {
    const NoAnswerScores no_answer = parse_no_answer_scores(file, "n.json");
    return score_v2(dataset, predictions, &no_answer).values.at("best_exact").get<double>();
  };
  EXPECT_EQ(best(R"({"q": 0.5, "r": 0.5})"), 100.0);
  EXPECT_EQ(best(R"({"r": 0.5, "q": 0.5})"), 50.0);
}

TEST(SquadMetrics, QuestionsWithoutAnAnswersKeyAreNotScored) {
  auto questions = fox_and_cat;
  questions.push_back({{"id", "unlabelled"}});
  const SquadDataset dataset = dataset_of(questions);
  EXPECT_EQ(score_v1(dataset, {{"q", "fox"}, {"r", "cat"}}).values.at("exact_match"), 100.0);
  EXPECT_EQ(score_v2(dataset, {{"q", "fox"}, {"r", "cat"}}).values.at("total"), 2);
}

TEST(SquadMetrics, SaysWhatCannotBeScored) {
  const SquadDataset unlabelled = dataset_of(nlohmann::json::parse(R"([{"id": "q"}])"));
  EXPECT_THAT(error_of([&] { score_v1(unlabelled, {}); }), HasSubstr("nothing to score: no question has answers"));
  EXPECT_THAT(error_of([&] { score_v2(unlabelled, {}); }), HasSubstr("nothing to score: no question has answers"));
  const SquadDataset dataset = dataset_of(fox_and_cat);
  EXPECT_THAT(error_of([&] { score_v2(dataset, {}); }), HasSubstr("nothing to score: no question has a prediction"));
  const SquadDataset impossible = dataset_of(nlohmann::json::parse(R"([{"id": "q", "answers": []}])"));
  EXPECT_THAT(error_of([&] {
                score_v1(impossible, {{"q", ""}});
              }),
              HasSubstr("question q has no answer, which SQuAD 1.1 does not allow; score it as 2.0"));
  const NoAnswerScores none;
  EXPECT_THAT(error_of([&] {
                score_v2(dataset, {{"q", "fox"}}, &none);
              }),
              HasSubstr("the no-answer file has no entry for question q"));
}

TEST(SquadMetrics, ReadsPredictionsAndNoAnswerScores) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "p.json", R"({"b": "x", "a": ""})");
  EXPECT_EQ(read_predictions(directory / "p.json"), (Predictions{{"a", ""}, {"b", "x"}}));
  tests::write_file(directory / "n.json", R"({"b": 0, "a": 0.5, "b": 2})");
  const NoAnswerScores scores = read_no_answer_scores(directory / "n.json");
  ASSERT_EQ(scores.in_order.size(), 2U);
  EXPECT_EQ(scores.in_order[0].first, "b");  // file order and the last value, like Python's dict
  EXPECT_EQ(scores.in_order[0].second, 2);
  EXPECT_EQ(scores.by_id.at("b"), 2.0);
  EXPECT_EQ(scores.by_id.at("a"), 0.5);
}

TEST(SquadMetrics, RefusesOtherFilesAndSaysWhere) {
  EXPECT_EQ(error_of([] { parse_predictions("[]", "p.json"); }), "p.json: expected object, found list");
  EXPECT_EQ(error_of([] { parse_predictions(R"({"q": null})", "p.json"); }), "p.json: q: expected string, found null");
  EXPECT_THAT(error_of([] { parse_predictions("{", "p.json"); }), HasSubstr("p.json: not JSON"));
  EXPECT_EQ(error_of([] { parse_no_answer_scores(R"({"q": "1"})", "n.json"); }),
            "n.json: q: expected number, found string");
  EXPECT_EQ(error_of([] { parse_no_answer_scores("3", "n.json"); }), "n.json: expected object, found number");
  EXPECT_THAT(error_of([] { read_predictions("/nowhere/p.json"); }), HasSubstr("/nowhere/p.json"));
}

using ::testing::ElementsAre;

TEST(SquadText, NormalisesInTheScriptsOrder) {
  EXPECT_EQ(normalize_answer("The  U.S.A., an  \u00a0 apple!"), "usa apple");
  EXPECT_EQ(normalize_answer("a-n"), "");  // punctuation is removed first, which leaves an article
  EXPECT_EQ(normalize_answer("the_ theatre"), "theatre");
  EXPECT_EQ(normalize_answer("“The” – end"), "“ ” – end");  // only ASCII punctuation is removed
  EXPECT_EQ(normalize_answer(""), "");
}

TEST(SquadText, SplitsAndComparesWords) {
  EXPECT_THAT(normalized_words("to be or"), ElementsAre("to", "be", "or"));
  EXPECT_TRUE(normalized_words("").empty());
  EXPECT_EQ(word_f1({"to", "to", "be"}, {"to", "be", "or"}), 2.0 / 3);
  EXPECT_EQ(word_f1({"x"}, {"y"}), 0);
  EXPECT_EQ(word_f1({}, {}), 0);
}

TEST(SquadText, NormalisationIsTheOfficialScripts) {
  const auto rows = tests::golden_lines("answer_pairs.jsonl");
  ASSERT_GT(rows.size(), 200U);
  for (const auto& row : rows) {
    EXPECT_EQ(normalize_answer(row[0].get<std::string>()), row[2].get<std::string>()) << row;
    EXPECT_EQ(normalize_answer(row[1].get<std::string>()), row[3].get<std::string>()) << row;
  }
}

}  // namespace
}  // namespace mylos::data
