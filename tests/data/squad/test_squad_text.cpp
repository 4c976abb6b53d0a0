#include "data/squad/squad_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/golden.hpp"

namespace mylos::data {
namespace {

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
