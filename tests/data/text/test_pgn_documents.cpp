#include "data/text/pgn_documents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/data/text/read_documents.hpp"
#include "tests/support/paths.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;

class PgnDocumentsTest : public ::testing::Test {
 protected:
  std::vector<std::string> read(const std::string& bytes) {
    return tests::documents_in(directory_ / "games.pgn", DocumentFormat::pgn, bytes);
  }

  tests::TemporaryDirectory directory_;
};

TEST_F(PgnDocumentsTest, AreTheMovesOfEachGame) {
  EXPECT_THAT(read("[Event \"A\"]\n[Result \"1-0\"]\n\n1. e4 e5\n2. Nf3 1-0\n\n[Event \"B\"]\n\n1. d4 1/2-1/2\n"),
              ElementsAre("1: e4 e5 Nf3", "7: d4"));
  EXPECT_THAT(read("\r\n1. e4 e5 0-1\r\n1. c4 *"), ElementsAre("2: e4 e5", "3: c4"));
  EXPECT_THAT(read("1. e4 0-1 1. c4 * 1. d4 1-0"), ElementsAre("1: e4", "1: c4", "1: d4"));
  EXPECT_THAT(read(""), ElementsAre());
  EXPECT_THAT(read("\n ; nothing\n{ nor here }\n% nor here {\n"), ElementsAre());
}

TEST_F(PgnDocumentsTest, NumbersAndSignsAreLeftOut) {
  EXPECT_THAT(read("1.e4 e5 2... Nf6 3 . d4 12...c5 13.O-O"), ElementsAre("1: e4 e5 Nf6 d4 c5 O-O"));
  EXPECT_THAT(read("1. e4! e5?? 2. Nf3!? Nc6?! 3. Bb5 $1 a6$142 4. Ba4 +- Nf6 \u00b1 5. O-O = Be7"),
              ElementsAre("1: e4 e5 Nf3 Nc6 Bb5 a6 Ba4 Nf6 O-O Be7"));
  EXPECT_THAT(read("5. exd6 e.p. 6. exd6e.p. e.p. 7. e4"), ElementsAre("1: exd6 exd6 e4"));
}

TEST_F(PgnDocumentsTest, MovesKeepTheirNotation) {
  const std::string moves = "Qh4xe1 e8=Q+ e7e8q Nbd7 R1a3# 0-0 0-0-0 O-O-O+ N@f3 -- exd8=N+ \u2658f3 e2-e4 Sf3";
  EXPECT_THAT(read(moves + " *"), ElementsAre("1: " + moves));
}

TEST_F(PgnDocumentsTest, CommentsAreLeftOut) {
  EXPECT_THAT(
      read("1. e4 { [%clk 0:01:00] 2. d4 ( [x] ; { } e5 {over\nlines 1-0\n} 2. Nf3 ; rest ( { \n Nc6{}3. Bb5 *"),
      ElementsAre("1: e4 e5 Nf3 Nc6 Bb5"));
  EXPECT_THAT(read("1. e4\n% e5 {\ne6 *"), ElementsAre("1: e4 e6"));
  EXPECT_THAT(read("1. e4 * {after}\n{before} 1. d4 *"), ElementsAre("1: e4", "2: d4"));
}

TEST_F(PgnDocumentsTest, VariationsAreLeftOut) {
  EXPECT_THAT(read("1. e4 (1. d4 d5 (1... Nf6 {)} 2. c4) 1-0 *) (1. c4)\n(1. f4\ne5) e5 *"), ElementsAre("1: e4 e5"));
}

TEST_F(PgnDocumentsTest, AGameNeedsNoResultAndNoMoves) {
  EXPECT_THAT(read("[Event \"A\"]\n\n1. e4\n[Event \"B\"]\n\n[Event \"C\"]\n\n1-0\n*\n[Event \"D\"]\n"),
              ElementsAre("1: e4", "4: ", "6: ", "9: ", "10: "));
}

TEST_F(PgnDocumentsTest, ValuesOfTagsMayHoldAnything) {
  EXPECT_THAT(read("[Event \"The \\\"big\\\" [one]\"][Site \"a {b\" ]\n[White \"an \"odd\" ; one (\"]\n1. e4"),
              ElementsAre("1: e4"));
  EXPECT_THAT(read(R"([Event "A [\"b\"]"][Site "c\\"] 1. e4)"), ElementsAre("1: e4"));
}

TEST_F(PgnDocumentsTest, WhatIsNotClosedIsNamedWithItsLine) {
  EXPECT_THAT(read("1. e4\n{ open\n1. d4"), ElementsAre("error: F, line 2: the comment is not closed"));
  EXPECT_THAT(read("1. e4 {\n[Event \"A\"]\n1. d4 {} *"), ElementsAre("error: F, line 1: the comment is not closed"));
  EXPECT_THAT(read("1. e4\n( 1. d4\n( 1. c4\n)\n*"), ElementsAre("error: F, line 2: the variation is not closed"));
  EXPECT_THAT(read("1. e4\n( 1. d4\n\n[Event \"A\"]\n1. d4 )"),
              ElementsAre("error: F, line 2: the variation is not closed"));
  EXPECT_THAT(read("1. e4 )"), ElementsAre("error: F, line 1: unexpected ')': no variation is open"));
  EXPECT_THAT(read("\n1. e4 }"), ElementsAre("error: F, line 2: unexpected '}'"));
  EXPECT_THAT(read("[Event \"A\"]\n[Site \"B\n"), ElementsAre("error: F, line 2: the tag is not closed"));
  EXPECT_THAT(read("{\"Moves\": []}\n<html>"), ElementsAre("error: F, line 2: unexpected '<'"));
}

TEST(PgnDocumentsOfChess, AreLichessGames) {
  const auto path = tests::shared_data() / "chess" / "games.pgn";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there (MYLOS_DATA)";
  PgnDocuments reader(path);
  const auto documents = tests::describe_documents(reader);
  ASSERT_EQ(documents.size(), 50U);
  EXPECT_EQ(
      documents[0],
      "1: c4 Nf6 Nc3 e5 d4 exd4 Qxd4 Nc6 Qd1 Bb4 Bd2 O-O e3 Bxc3 Bxc3 Ne4 Ne2 d6 Qc2 Re8 Nf4 Bf5 Bd3 Qg5 O-O g6 Rae1 "
      "Nxc3 Qxc3 Bxd3 Qxd3 Ne5 Qd1 Rad8 b3 c6 Kh1 Qf5 Qa1 h5 Rd1 Ng4 h3 Nf6 Qd4 a6 f3 Qe5 Rfe1 Qxd4 exd4 Rxe1+ Rxe1 "
      "Kf8 h4 Re8 Rxe8+ Kxe8 Kg1 Ng8 Kf2 Nh6 g3 Ke7 Ng2 Ke6 Ne3 a5 g4 f6 Kg3 d5 c5 Nf7 Ng2 hxg4 fxg4 Nd8 Nf4+ Kf7 h5 "
      "g5 Ne2 Ne6 Kf3 Kg7 Ke3 Kh6 Ng3 Ng7 Nf5+ Nxf5+");
  for (const auto& document : documents) {
    EXPECT_EQ(document.find_first_of("{}()[].;!?*\""), std::string::npos) << document;
  }
}

}  // namespace
}  // namespace mylos::data
