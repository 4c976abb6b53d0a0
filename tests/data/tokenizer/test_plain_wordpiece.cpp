// The tokenizer's shortcuts do not change results: random texts of letters, blanks, accents, controls and special
// tokens.

#include "data/tokenizer/plain_wordpiece.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace mylos::data {
namespace {

Vocabulary mill_vocabulary() {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",  "the",  "mill", "##s",      "mills",
                                     "wind",  "##m",   "un",    "##able", "Mill", "e",    "##\u00e9", "\u4e2d"};
  for (char c = 'a'; c <= 'd'; ++c) {
    tokens.emplace_back(1, c);
    tokens.push_back(std::string("##") + c);
  }
  tokens.insert(tokens.end(), {"!", ".", "[", "]", "-"});
  return {std::move(tokens), "vocabulary"};
}

const std::vector<std::string> parts = {"the",    "mill",  "Mills",  "WIND",   "unable", "a",       "bcd",    " ",
                                        " ",      "  ",    "\t",     "\n",     "!",      ".",       "[",      "]",
                                        "-",      "[SEP]", "[MASK]", "[sep]",  "\u00e9", "e\u0301", "\u4e2d", "\u00a0",
                                        "\u200b", "\x01",  "\x7f",   "\ufffd", "\u0130", "\u1f82",  "x",      "\u201c"};

std::string random_text(std::minstd_rand& generator) {
  std::string text;
  for (auto count = generator() % 24; count > 0; --count) text += parts[generator() % parts.size()];
  if (generator() % 50 == 0) text += std::string(95 + generator() % 10, 'a');  // around the maximum length of a word
  return text;
}

TEST(PlainWordPiece, AgreesWithTheTokenizer) {
  std::minstd_rand generator(7);
  for (const bool lower : {true, false}) {
    for (const bool chinese : {true, false}) {
      const TokenizerOptions options{.do_lower_case = lower, .strip_accents = {}, .tokenize_chinese_chars = chinese};
      const WordPieceTokenizer tokenizer(mill_vocabulary(), options);
      for (int i = 0; i < 5000; ++i) {
        const std::string text = random_text(generator);
        const Tokens tokens = tokenizer.tokenize(text);
        const Tokens plain = tokenizer.plain_tokens(text).value();
        ASSERT_EQ(tokens.ids, plain.ids) << text;
        ASSERT_EQ(tokens.offsets, plain.offsets) << text;
      }
    }
  }
}

}  // namespace
}  // namespace mylos::data
