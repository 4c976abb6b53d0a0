#include "tasks/question_answering/excerpt.hpp"

#include <gtest/gtest.h>

namespace mylos::tasks {
namespace {

TEST(Excerpt, IsTheSentenceOfTheAnswer) {
  const std::string text = "One is first. The caf\u00e9 is old! Three?";
  const Excerpt excerpt = sentence_around(text, {18, 22});
  EXPECT_EQ(excerpt.before, "The ");
  EXPECT_EQ(excerpt.answer, "caf\u00e9");
  EXPECT_EQ(excerpt.after, " is old!");
  EXPECT_EQ(excerpt.text(), "The caf\u00e9 is old!");
}

TEST(Excerpt, SpansTheSentencesOfALongAnswer) {
  EXPECT_EQ(sentence_around("A b. C d. E f. G h.", {7, 11}).text(), "C d. E f.");
  EXPECT_EQ(sentence_around("A b. C d. E f.", {5, 9}).text(), "C d.");
}

TEST(Excerpt, StaysOnOneLineAndInTheText) {
  EXPECT_EQ(sentence_around("one\ttwo\nthree\nfour", {8, 13}).text(), "three");
  EXPECT_EQ(sentence_around("one\ttwo", {0, 3}).text(), "one two");
  EXPECT_EQ(sentence_around("short", {0, 99}).text(), "short");
  EXPECT_EQ(sentence_around("", {0, 0}).text(), "");
  EXPECT_EQ(on_one_line("a\nb\tc\x1b[1m"), "a b c [1m");
}

TEST(Excerpt, IsCutWhereASentenceGoesOn) {
  const std::string word(200, 'x');
  const Excerpt excerpt = sentence_around(word + " answer " + word, {201, 207});
  EXPECT_EQ(excerpt.before, "..." + std::string(159, 'x') + " ");
  EXPECT_EQ(excerpt.after, " " + std::string(159, 'x') + "...");
}

}  // namespace
}  // namespace mylos::tasks
