#include "tasks/question_answering/squad_task.hpp"

#include "data/tokenizer/json/wordpiece.hpp"
#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::tasks {
namespace {

using testing::ElementsAre;

/// Returns question "one" with windows 0 to 2, and question "2" with window 3.
SquadWindows two_questions() {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
  for (char letter = 'a'; letter <= 'z'; ++letter) tokens.emplace_back(1, letter);
  data::SquadDataset dataset;
  dataset.contexts = {"a b c d e f g h i j k l", "m"};
  dataset.questions = {{"one", 0, "x", {{"b", 2, true}}, true, false}, {"2", 1, "y", {{"m", 0, true}}, true, false}};
  SquadConfig config;
  config.max_length = 10;
  config.doc_stride = 3;
  const data::Vocabulary vocabulary(std::move(tokens), "letters");
  return cut_windows(std::move(dataset), data::WordPieceTokenizer(vocabulary), config, true);
}

class SquadOrder : public testing::Test {
 protected:
  std::vector<std::vector<std::size_t>> read(const std::string& text) {
    tests::write_file(path_, text);
    return read_order(path_, windows_);
  }
  std::string error(const std::string& text) {
    return tests::error_of_file(path_, [&] { read(text); });
  }

  tests::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_ / "order.jsonl";
  SquadWindows windows_ = two_questions();
};

TEST_F(SquadOrder, NamesWindowsByQuestion) {
  ASSERT_EQ(windows_.count(), 4u);
  EXPECT_THAT(read("[[2, 0]]\n[[\"one\", 2], [\"one\", 0]]\n"), ElementsAre(ElementsAre(3u), ElementsAre(2u, 0u)));
}

/// As samplers with replacement produce them. Each copy has its own random numbers, by its position in the batch.
TEST_F(SquadOrder, AStepMayHaveAWindowTwice) {
  EXPECT_THAT(read("[[\"2\", 0], [2, 0]]\n"), ElementsAre(ElementsAre(3u, 3u)));
}

TEST_F(SquadOrder, WrongIdsAreErrorsOfOneLine) {
  EXPECT_EQ(error("[[\"\\u001b]52;c;aGk=\\u0007\\n\", 0]]\n"),
            "F: line 1: the training data has no question \"\\x1b]52;c;aGk=\\x07\\x0a\"");
  EXPECT_EQ(error("[[\"" + std::string(5000, 'a') + "\", 0]]\n"),
            "F: line 1: the training data has no question \"" + std::string(80, 'a') + "...\"");
  EXPECT_EQ(error("[[1.5, 0]]\n"), "F: line 1: expected a string or a whole number of at most 64 bits, found 1.5");
  EXPECT_EQ(error("[[18446744073709551616, 0]]\n"),
            "F: line 1: expected a string or a whole number of at most 64 bits, found 1.8446744073709552e+19");
  EXPECT_EQ(error("[[true, 0]]\n"), "F: line 1: expected string or whole number, found boolean");
  EXPECT_EQ(error("[[[\"one\"], 0]]\n"), "F: line 1: expected string or whole number, found list");
  EXPECT_EQ(error("[[\"one\", 3]]\n"), "F: line 1: question \"one\" has no window 3");
  EXPECT_EQ(error("[[\"one\", \"0\"]]\n"), "F: line 1: expected number, found string");
  EXPECT_EQ(error("[[\"one\"]]\n"), "F: line 1: a sample is [question id, window index]");
}

TEST_F(SquadOrder, EscapesInAnIdOfTheDataAreShownAsText) {
  windows_.dataset.questions[0].id = "\x1b[1m";
  EXPECT_EQ(error("[[\"\\u001b[1m\", 7]]\n"), "F: line 1: question \"\\x1b[1m\" has no window 7");
}

}  // namespace
}  // namespace mylos::tasks
