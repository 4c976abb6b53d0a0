#include "data/squad/feature_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/crc32c.hpp"
#include "core/base/files/hdf5_file.hpp"
#include "tests/data/squad/prepared.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using tests::error_of;

bool same(const Feature& a, const Feature& b) {
  return a.question == b.question && a.window == b.window && a.context_begin == b.context_begin &&
         a.context_count == b.context_count && a.start == b.start && a.end == b.end;
}

/// Expects that select_features equals build_features for the first `limit` questions.
void expect_same_selection(SquadDataset dataset, FeatureOptions options, std::size_t limit) {
  const auto prepared = prepare_features(dataset, letter_tokenizer(), options);
  limit_questions(dataset, limit);
  const auto built = build_features(dataset, letter_tokenizer(), options);
  const auto selected = select_features(dataset, prepared.features, options);
  ASSERT_EQ(selected.features.size(), built.features.size());
  for (std::size_t i = 0; i < built.features.size(); ++i)
    EXPECT_TRUE(same(selected.features[i], built.features[i])) << i;
  EXPECT_EQ(selected.sep_labels, built.sep_labels);
  EXPECT_EQ(selected.dropped_questions, built.dropped_questions);
}

TEST(FeatureFile, SelectionGivesTheWindowsThatBuildingGives) {
  auto answered = every_kind_of_question();
  answered.questions.erase(answered.questions.begin() + 3);  // the question without answers cannot be used for training
  for (const bool exact : {false, true}) {
    for (std::size_t limit = 1; limit <= 6; ++limit) {
      expect_same_selection(every_kind_of_question(), {12, 2, exact, false}, limit);
      expect_same_selection(answered, {12, 2, exact, true}, limit);
    }
    // Answers at every position, so that some start at a window's last token.
    for (std::size_t location = 0; location < 14; ++location) {
      auto dataset = answered;
      dataset.questions[0].answers = {{std::string(1, dataset.contexts[0][2 * location]), 2 * location, true}};
      expect_same_selection(dataset, {12, 2, exact, true}, 6);
    }
  }
}

TEST(FeatureFile, SelectionForTrainingRefusesQuestionsWithoutAnswers) {
  const auto prepared = small_prepared();
  const FeatureOptions options{.max_length = 12, .doc_stride = 2, .exact_labels = false, .training = true};
  EXPECT_EQ(error_of([&] { select_features(prepared.dataset, prepared.features, options); }),
            "question open: has no 'answers'; training needs them");
}

TEST(FeatureFile, DifferencesFromThisRunAreNamed) {
  const auto prepared = small_prepared();
  const auto same_tokenizer = prepared.tokenizer;
  const auto message = [&](const TokenizerIdentity& tokenizer, const FeatureOptions& options) {
    return error_of([&] { check_prepared_for(prepared, "F", tokenizer, options); });
  };
  const std::string advice = "; prepare it again with `mylos prepare`, or run with the same";
  EXPECT_EQ(message(same_tokenizer, {12, 2, false, true}), "(nothing was thrown)");
  EXPECT_EQ(message(same_tokenizer, {384, 2}), "F was prepared with `max-length` 12, this run has 384" + advice);
  EXPECT_EQ(message(same_tokenizer, {12, 128}), "F was prepared with `doc-stride` 2, this run has 128" + advice);
  EXPECT_EQ(message(same_tokenizer, {12, 2, true}),
            "F was prepared with `exact-labels` false, this run has true" + advice);
  FeatureOptions truncated{12, 2};
  truncated.truncate = true;
  EXPECT_EQ(message(same_tokenizer, truncated), "F was prepared with `long` split, this run has truncate" + advice);
  EXPECT_EQ(message({12, 0xabc}, {12, 2}), "F was prepared with " + identity_text(same_tokenizer) +
                                               ", this run has a tokenizer of 12 tokens (CRC32C 00000abc)" + advice);
}

TEST(FeatureFile, Hdf5IsToldFromJsonByItsFirstBytes) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "json", "{\"data\": []}");
  tests::write_file(directory / "hdf5", "\x89HDF\r\n\x1a\n and more");
  EXPECT_FALSE(is_hdf5_file(directory / "json"));
  EXPECT_TRUE(is_hdf5_file(directory / "hdf5"));
  EXPECT_FALSE(is_hdf5_file(directory / "absent"));
}

}  // namespace
}  // namespace mylos::data
