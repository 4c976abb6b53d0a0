#include "tasks/question_answering/squad_windows.hpp"

#include "data/tokenizer/json/wordpiece.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

namespace mylos::tasks {
namespace {

data::WordPieceTokenizer letters() {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  for (char letter = 'a'; letter <= 'z'; ++letter) tokens.emplace_back(1, letter);
  return data::WordPieceTokenizer(data::Vocabulary(tokens, "letters"));
}

/// Returns a question about a context of 16 words, divided into two windows that both contain words 7 to 14. Word
/// `edited` of the context is `word`.
SquadWindows windows_of(std::size_t edited, const std::string& word, const std::string& answer = "a") {
  std::string context;
  for (std::size_t i = 0; i < 16; ++i) {
    context += fmt::format("{}{}", i == 0 ? "" : " ", i == edited ? word : std::string(1, static_cast<char>('a' + i)));
  }
  data::SquadDataset dataset;
  dataset.contexts = {context};
  dataset.questions = {{"q", 0, "x y", {{answer, 0, true}}, true, false}};
  SquadConfig config;
  config.max_length = 20;
  config.doc_stride = 8;
  return cut_windows(dataset, letters(), config, true);
}

TEST(SquadWindows, EveryEditOfATokenHasAnotherChecksum) {
  std::set<std::uint32_t> checksums = {windows_of(16, "").checksum()};
  ASSERT_GT(windows_of(16, "").count(), 1u) << "neighbouring windows share tokens";
  for (std::size_t edited = 0; edited < 16; ++edited) {
    for (const char* word : {"y", "z"})
      EXPECT_TRUE(checksums.insert(windows_of(edited, word).checksum()).second) << edited;
  }
}

TEST(SquadWindows, ScoresDependOnMoreThanTheWindows) {
  const SquadWindows windows = windows_of(16, "");
  SquadWindows other = windows;
  other.dataset.questions[0].answers.push_back({"b", 2, true});
  EXPECT_EQ(other.checksum(), windows.checksum());
  EXPECT_NE(other.scored_checksum(), windows.scored_checksum());
  other = windows;
  other.dataset.questions[0].answers[0].text = "b";
  EXPECT_NE(other.scored_checksum(), windows.scored_checksum());
  other = windows;
  other.dataset.questions[0].id = "r";
  EXPECT_NE(other.scored_checksum(), windows.scored_checksum());
  other = windows;
  other.dataset.version = data::SquadVersion::v2_0;
  EXPECT_NE(other.scored_checksum(), windows.scored_checksum());
  EXPECT_EQ(windows_of(16, "").scored_checksum(), windows.scored_checksum());
}

}  // namespace
}  // namespace mylos::tasks
