#include "data/squad/features.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "data/tokenizer/json/wordpiece.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::HasSubstr;
using tests::error_of;

WordPieceTokenizer uncased_tokenizer() {
  return WordPieceTokenizer(Vocabulary::load(FileReader(), tests::uncased_vocabulary()));
}

/// Returns a tokenizer with one token per letter, so that windows can be counted by hand.
WordPieceTokenizer letters() {
  return WordPieceTokenizer(
      Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e", "f", "g"}, "letters"));
}

SquadDataset one_question(std::string context, std::vector<SquadAnswer> answers) {
  SquadDataset dataset;
  dataset.contexts = {std::move(context)};
  dataset.questions = {{"id-1", 0, "a b", std::move(answers), true, false}};
  return dataset;
}

FeatureOptions windows_of(std::size_t max_length, std::size_t stride) {
  FeatureOptions options;
  options.max_length = max_length;
  options.doc_stride = stride;
  return options;
}

std::vector<TokenId> input_ids(const FeatureSet& set, const Feature& feature) {
  std::vector<TokenId> ids;
  set.append_input_ids(feature, ids);
  return ids;
}

TEST(Features, AnAnswerInTheLastTokenIsLabelledAsRunQaDoesUnlessExact) {
  const SquadDataset dataset = one_question("a b c", {{"c", 4}});
  FeatureOptions options = windows_of(10, 1);
  const auto like_run_qa = build_features(dataset, letters(), options);
  EXPECT_EQ(like_run_qa.features[0].start, 7);  // the final [SEP]
  EXPECT_EQ(like_run_qa.features[0].end, 6);
  EXPECT_EQ(like_run_qa.sep_labels, 1U);
  options.exact_labels = true;
  const auto exact = build_features(dataset, letters(), options);
  EXPECT_EQ(exact.features[0].start, 6);
  EXPECT_EQ(exact.features[0].end, 6);
  EXPECT_EQ(exact.sep_labels, 1U);
}

/// A truncated context keeps its beginning, even if the question leaves fewer tokens than the stride.
TEST(Features, TruncatedContextsHaveOneWindow) {
  FeatureOptions options = windows_of(8, 2);  // 3 tokens of the context
  for (const auto& [text, start] : {std::pair("c", std::size_t{4}), std::pair("d", std::size_t{6})}) {
    const SquadDataset dataset = one_question("a b c d e", {{text, start}});
    options.truncate = false;
    const FeatureSet all = build_features(dataset, letters(), options);
    ASSERT_EQ(all.features.size(), 3U);
    options.truncate = true;
    const FeatureSet first = build_features(dataset, letters(), options);
    ASSERT_EQ(first.features.size(), 1U);
    EXPECT_EQ(input_ids(first, first.features[0]), input_ids(all, all.features[0]));
    EXPECT_EQ(first.features[0].end, start == 4 ? 6 : 0) << "an answer behind the window is labelled [CLS]";
  }
  options.doc_stride = 3;
  EXPECT_EQ(build_features(one_question("a b c d e", {}), letters(), options).features.size(), 1U);
}

/// letters(), with the pair layout of RoBERTa.
class LettersOfOneType final : public Tokenizer {
 public:
  using Tokenizer::tokenize;
  TokenizerIdentity identity() const override { return letters().identity(); }
  void tokenize(std::string_view text, Tokens& tokens) const override { letters().tokenize(text, tokens); }
  std::string token(TokenId id) const override { return letters().token(id); }
  bool continues_word(TokenId id) const override { return letters().continues_word(id); }
  std::optional<TokenId> special(SpecialToken role) const override { return letters().special(role); }
  PairLayout pair_layout() const override {
    PairLayout layout = Tokenizer::pair_layout();
    layout.separators = 2;
    layout.second_type = 0;
    return layout;
  }
};

TEST(Features, ThePairLayoutIsThatOfTheTokenizer) {
  const SquadDataset dataset = one_question("a b c d", {{"c", 4}});
  const FeatureSet one = build_features(dataset, letters(), windows_of(8, 1));
  const FeatureSet two = build_features(dataset, LettersOfOneType(), windows_of(9, 1));
  ASSERT_EQ(two.features.size(), one.features.size());
  std::vector<TokenId> expected = input_ids(one, one.features[0]);
  expected.insert(expected.begin() + 3, one.layout.separator);  // after the question of two tokens
  EXPECT_EQ(input_ids(two, two.features[0]), expected);
  EXPECT_EQ(two.length(two.features[0]), expected.size());
  EXPECT_EQ(two.features[0].start, one.features[0].start + 1);
}

TEST(Features, TrainingCanLeaveOutWhatHasNoAnswer) {
  SquadDataset dataset = one_question("a b c", {{"c", 4}});
  dataset.questions.push_back({"id-2", 0, "a", {}, true, true});
  for (const bool training : {false, true}) {
    FeatureOptions options = windows_of(10, 1);
    options.training = training;
    options.answerable_only = true;
    const FeatureSet set = build_features(dataset, letters(), options);
    EXPECT_EQ(set.features.size(), training ? 1U : 2U);
    EXPECT_EQ(set.dropped_questions, training ? 1U : 0U);
  }
}

TEST(Features, TheFirstAlignedAnswerIsTheLabel) {
  const SquadDataset dataset = one_question("a b c d", {{"zz", 0, false}, {"b", 2}, {"a", 0}});
  const auto set = build_features(dataset, letters(), {});
  EXPECT_EQ(set.features[0].start, 5);
}

TEST(Features, WhatHasNoLabelIsPredictedButNotTrainedOn) {
  SquadDataset dataset = one_question("a b c d", {{"zz", 0, false}});
  FeatureOptions training;
  training.training = true;
  EXPECT_EQ(build_features(dataset, letters(), {}).features.values().at(0).start, -1);
  EXPECT_TRUE(build_features(dataset, letters(), training).features.empty());
  EXPECT_EQ(build_features(dataset, letters(), training).dropped_questions, 1U);

  dataset.questions[0].answers.clear();  // unanswerable
  EXPECT_EQ(build_features(dataset, letters(), training).features.values().at(0).start, 0);

  dataset.questions[0].has_answers_key = false;
  EXPECT_EQ(build_features(dataset, letters(), {}).features.values().at(0).start, -1);
  EXPECT_THAT(error_of([&] { build_features(dataset, letters(), training); }),
              HasSubstr("question id-1: has no 'answers'; training needs them"));
}

TEST(Features, AQuestionThatLeavesNoRoomIsNamed) {
  const SquadDataset dataset = one_question("a b c d e", {});
  EXPECT_NO_THROW(build_features(dataset, letters(), windows_of(8, 2)));
  EXPECT_THAT(
      error_of([&] { build_features(dataset, letters(), windows_of(8, 3)); }),
      HasSubstr("question id-1: its 2 tokens leave 3 of 8 for the context, which must be more than the stride 3"));
  EXPECT_THAT(error_of([&] { build_features(dataset, letters(), windows_of(5, 0)); }),
              HasSubstr("question id-1: its 2 tokens leave 0 of 5"));
  EXPECT_THAT(error_of([&] { build_features(dataset, letters(), windows_of(2, 0)); }), HasSubstr("leave 0 of 2"));
  EXPECT_NO_THROW(build_features(dataset, letters(), windows_of(10, 9)));  // a single window needs no stride
}

TEST(Features, AContextIsTokenisedOnce) {
  SquadDataset dataset = one_question("a b c", {});
  dataset.questions.push_back(dataset.questions[0]);
  const auto set = build_features(dataset, letters(), {});
  EXPECT_EQ(set.contexts.size(), 1U);
  EXPECT_EQ(set.contexts.tokens.ids.size(), 3U);
  EXPECT_EQ(set.features.size(), 2U);
  EXPECT_EQ(set.context_offsets(set.features[0]).data(), set.context_offsets(set.features[1]).data());
}

nlohmann::json window_json(const SquadDataset& dataset, const FeatureSet& set, const Feature& feature) {
  nlohmann::json json;
  json["id"] = dataset.questions[feature.question].id;
  json["window"] = feature.window;
  json["input_ids"] = input_ids(set, feature);
  std::vector<int> types(set.context_position(feature), 0);
  types.resize(set.length(feature), 1);
  json["token_type_ids"] = types;
  json["offsets"] = std::vector<nlohmann::json>(set.length(feature));
  const auto offsets = set.context_offsets(feature);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    json["offsets"][set.context_position(feature) + i] = {offsets[i].begin, offsets[i].end};
  }
  json["start"] = feature.start;
  json["end"] = feature.end;
  return json;
}

TEST(Features, OddQuestionsAreRunQas) {
  const auto golden = tests::golden_json("features_odd.json");
  const SquadDataset dataset = parse_squad(nlohmann::json{{"data", golden.at("rows")}}.dump(), "features_odd.json");
  const auto set =
      build_features(dataset, uncased_tokenizer(), windows_of(golden.at("max_length"), golden.at("stride")));
  const auto& windows = golden.at("windows");
  for (std::size_t i = 0; i < std::min(windows.size(), set.features.size()); ++i) {
    EXPECT_EQ(window_json(dataset, set, set.features[i]), windows[i]);
  }
  EXPECT_EQ(set.features.size(), windows.size());
  EXPECT_EQ(set.sep_labels, 2U);
}

std::string window_digest(const FeatureSet& set, const Feature& feature) {
  tests::Digest digest;
  digest.add(feature.question);
  digest.add(feature.window);
  const std::size_t length = set.length(feature);
  const std::size_t first = set.context_position(feature);
  digest.add(static_cast<std::int64_t>(length));
  for (const TokenId id : input_ids(set, feature)) digest.add(id);
  for (std::size_t i = 0; i < length; ++i) digest.add(i < first ? 0 : 1);
  const auto offsets = set.context_offsets(feature);
  for (std::size_t i = 0; i < length; ++i) {
    const bool in_context = i >= first && i < first + offsets.size();
    digest.add(in_context ? offsets[i - first].begin : -1);
    digest.add(in_context ? offsets[i - first].end : -1);
  }
  digest.add(feature.start);
  digest.add(feature.end);
  return digest.hexadecimal().substr(8);
}

/// Compares the windows of the recorded files that are in the tree, or of those that are not.
void compare_windows(bool in_tree) {
  const auto files = tests::golden_lines_of(in_tree, "features.jsonl");
  ASSERT_EQ(files.size(), 2U);
  for (const auto& file : files) {
    const auto name = file.at("data").get<std::string>();
    const auto path = tests::recorded_questions(name);
    if (!in_tree && !std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent (MYLOS_DATA)";
    const SquadDataset dataset = read_squad(path);
    const auto set = build_features(dataset, uncased_tokenizer(), {});
    ASSERT_EQ(set.features.size(), file.at("windows"));
    const auto digests = file.at("digests").get<std::string>();
    for (std::size_t i = 0; i < set.features.size(); ++i) {
      ASSERT_EQ(window_digest(set, set.features[i]), digests.substr(8 * i, 8)) << name << " window " << i;
    }
  }
}

TEST(Features, EveryWindowOfTheExamplesIsRunQas) { compare_windows(true); }
TEST(Features, EveryWindowOfBothDevFilesIsRunQas) { compare_windows(false); }

TEST(Features, TheReferenceRunUsedTheseWindows) {
  const auto order_path = tests::shared_reference() / "minilm-v1.1" / "order.jsonl";
  if (!std::filesystem::exists(order_path)) GTEST_SKIP() << "no reference run at " << order_path;
  const SquadDataset dataset = read_squad(tests::shared_data() / "squad" / "v1.1" / "train.json");
  FeatureOptions options;
  options.training = true;
  const auto set = build_features(dataset, uncased_tokenizer(), options);
  EXPECT_EQ(set.features.size(), 14503U);
  std::set<std::pair<std::string, std::uint32_t>> windows;
  for (const Feature& feature : set.features) windows.emplace(dataset.questions[feature.question].id, feature.window);
  const auto order = tests::json_lines(order_path);
  EXPECT_EQ(order.size(), 400U);
  for (const auto& step : order) {
    for (const auto& item : step) {
      ASSERT_TRUE(windows.contains({item[0].get<std::string>(), item[1].get<std::uint32_t>()})) << item;
    }
  }
}

}  // namespace
}  // namespace mylos::data
