#include "data/tokenizer/vocabulary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::HasSubstr;
using tests::error_of;

Vocabulary load_text(std::string_view text) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "vocab.txt", text);
  return Vocabulary::load(FileReader(), directory / "vocab.txt");
}

TEST(Vocabulary, AnIdIsALine) {
  const Vocabulary vocabulary = load_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n##s\n");
  EXPECT_EQ(vocabulary.size(), 6U);
  EXPECT_EQ(vocabulary.padding(), 0);
  EXPECT_EQ(vocabulary.unknown(), 1);
  EXPECT_EQ(vocabulary.classify(), 2);
  EXPECT_EQ(vocabulary.separator(), 3);
  EXPECT_EQ(vocabulary.find("the"), 4);
  EXPECT_EQ(vocabulary.find("th"), std::nullopt);
  EXPECT_EQ(vocabulary.token(5), "##s");
  EXPECT_THAT(error_of([&] { (void)vocabulary.token(6); }), HasSubstr("token id 6 is not in the vocabulary of 6"));
  EXPECT_THAT(error_of([&] { (void)vocabulary.token(-1); }), HasSubstr("token id -1"));
}

TEST(Vocabulary, ReadsCarriageReturnsAndTrailingBlankLines) {
  const Vocabulary vocabulary = load_text("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\nx\r\n\r\n\n");
  EXPECT_EQ(vocabulary.size(), 5U);
  EXPECT_EQ(vocabulary.find("x"), 4);
}

TEST(Vocabulary, RefusesBrokenFilesAndSaysWhere) {
  const std::string specials = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n";
  EXPECT_THAT(error_of([] { Vocabulary::load(FileReader(), "/nowhere/vocab.txt"); }), HasSubstr("/nowhere/vocab.txt"));
  EXPECT_THAT(error_of([] { load_text(""); }), HasSubstr("vocab.txt: the file is empty"));
  EXPECT_THAT(error_of([&] { load_text(specials + "\xFF\n"); }), HasSubstr("not UTF-8 at byte 24"));
  EXPECT_THAT(error_of([&] { load_text(specials + "x\ny\nx\n"); }),
              HasSubstr("token 'x' stands on line 5 and again on line 7"));
}

/// As in transformers, whose ids are lines, too.
TEST(Vocabulary, LinesOfWhiteSpaceHaveIdsAndNeverMatch) {
  const Vocabulary vocabulary = load_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n \n\n\t\n\nb \na\n");
  EXPECT_EQ(vocabulary.size(), 10U);
  EXPECT_EQ(vocabulary.find("a"), 9);
  EXPECT_EQ(vocabulary.find("b"), std::nullopt);
  EXPECT_EQ(vocabulary.find(" "), std::nullopt);
  EXPECT_EQ(vocabulary.trie().longest_match(TokenTrie::root, " ", 0).id, -1);
}

TEST(Vocabulary, NamesAMissingSpecialToken) {
  for (const std::string missing : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) {
    std::string text = "x\n";
    for (const std::string token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) text += token == missing ? "" : token + "\n";
    EXPECT_THAT(error_of([&] { load_text(text); }), HasSubstr("vocab.txt: no line is " + missing));
  }
}

}  // namespace
}  // namespace mylos::data
