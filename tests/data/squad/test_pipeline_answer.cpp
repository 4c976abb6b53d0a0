#include "data/squad/pipeline_answer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "data/squad/features.hpp"
#include "data/tokenizer/json/wordpiece.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

Vocabulary golden_vocabulary() {
  return Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "##a", "##b", "##c", "##d", ".",
                     "'", "\u4e2d"},
                    "golden");
}

TEST(PipelineAnswer, EqualsThePipelinesOnRecordedLogits) {
  const WordPieceTokenizer tokenizer(golden_vocabulary());
  const auto cases = tests::golden_lines("pipeline_answers.jsonl");
  ASSERT_EQ(cases.size(), 60u);
  std::size_t windows_seen = 0;
  for (const auto& row : cases) {
    SquadDataset dataset;
    dataset.contexts = {row["context"].get<std::string>()};
    dataset.questions = {{"q", 0, row["question"].get<std::string>(), {}, false, false}};
    const auto set = build_features(dataset, tokenizer, {.max_length = 24, .doc_stride = 6});
    ASSERT_EQ(set.features.size(), row["windows"].size()) << row;
    std::vector<std::vector<float>> logits;
    for (const auto& window : row["windows"]) {
      logits.push_back(window["start"].get<std::vector<float>>());
      logits.push_back(window["end"].get<std::vector<float>>());
    }
    std::vector<PipelineWindow> windows;
    for (std::size_t i = 0; i < set.features.size(); ++i) {
      const auto& feature = set.features[i];
      ASSERT_EQ(logits[2 * i].size(), set.length(feature));
      windows.push_back(
          {{logits[2 * i], logits[2 * i + 1], set.context_position(feature), set.context_offsets(feature)},
           set.contexts.ids(0).subspan(feature.context_begin, feature.context_count)});
    }
    windows_seen += windows.size();
    const auto answer = find_pipeline_answer(dataset.contexts[0], windows, tokenizer, 5);
    EXPECT_EQ(answer.text, row["answer"].get<std::string>()) << row;
    EXPECT_EQ(answer.range.begin, row["start"].get<unsigned>()) << row;
    EXPECT_EQ(answer.range.end, row["end"].get<unsigned>()) << row;
    EXPECT_NEAR(answer.score, row["score"].get<float>(), 1e-6) << row;
  }
  EXPECT_GT(windows_seen, 100u);
}

TEST(PipelineAnswer, IsNoneWhereTheLowestNullScoreIsAboveEveryAnswers) {
  const std::vector<CodePointRange> offsets{{0, 1}, {2, 3}};
  const std::vector<TokenId> ids{5, 6};
  // [CLS] question [SEP] and two tokens of the context
  const std::vector<float> sure_of_none{6, 0, 0, 1, 0}, unsure{2, 0, 0, 1, 0}, sure_of_a{0, 0, 0, 6, 0};
  const auto answer = [&](const std::vector<const std::vector<float>*>& logits, bool may_be_none) {
    std::vector<PipelineWindow> windows;
    for (const auto* each : logits) windows.push_back({{*each, *each, 3, offsets}, ids});
    return find_pipeline_answer("a b", windows, WordPieceTokenizer(golden_vocabulary()), 5, may_be_none);
  };
  EXPECT_EQ(answer({&sure_of_none}, true).text, "");
  EXPECT_EQ(answer({&sure_of_none}, true).range, CodePointRange{});
  const double share = std::exp(6.0) / (std::exp(6.0) + std::exp(1.0) + 1.0);
  EXPECT_NEAR(answer({&sure_of_none}, true).score, share * share, 1e-6);
  EXPECT_EQ(answer({&sure_of_none}, false).text, "a");
  EXPECT_EQ(answer({&sure_of_a}, true).text, "a");
  EXPECT_EQ(answer({&sure_of_none, &sure_of_a}, true).text, "a") << "one window has it";
  EXPECT_EQ(answer({&sure_of_none, &unsure}, true).text, "");
  EXPECT_NEAR(answer({&sure_of_none, &unsure}, true).score, answer({&unsure}, true).score, 1e-6) << "the lowest";
}

TEST(PipelineAnswer, WithoutContextThereIsNoAnswer) {
  const std::vector<float> logits{1, 2, 3};
  const std::vector<PipelineWindow> windows{{{logits, logits, 2, {}}, {}}};
  const auto answer = find_pipeline_answer("", windows, WordPieceTokenizer(golden_vocabulary()), 5);
  EXPECT_EQ(answer.text, "");
  EXPECT_EQ(answer.score, 0);
  EXPECT_THAT(tests::error_of([&] { find_pipeline_answer("", windows, WordPieceTokenizer(golden_vocabulary()), 0); }),
              ::testing::HasSubstr("an answer has at least one token"));
}

}  // namespace
}  // namespace mylos::data
