#include "data/tokenizer/json/wordpiece.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/base/crc32c.hpp"
#include "data/tokenizer/json/json_tokenizer.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Parses options as written by lab/record/tokens.py: lower, strip ("-": unset), chinese.
TokenizerOptions parse_switches(const std::string& switches) {
  TokenizerOptions options;
  options.do_lower_case = switches[0] == '1';
  if (switches[1] != '-') options.strip_accents = switches[1] == '1';
  options.tokenize_chinese_chars = switches[2] == '1';
  return options;
}

Vocabulary small_vocabulary() {
  return {
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff", "##able", "a", "##b", "中", "!", "Un", "é", "e"},
      "small"};
}

std::vector<std::string> words(const WordPieceTokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> result;
  for (const TokenId id : tokenizer.tokenize(text).ids) result.push_back(tokenizer.token(id));
  return result;
}

TEST(WordPiece, AppendsToWhatIsThere) {
  const WordPieceTokenizer tokenizer(small_vocabulary());
  Tokens tokens = tokenizer.tokenize("a");
  tokenizer.tokenize("un", tokens);
  EXPECT_THAT(tokens.ids, ElementsAre(8, 5));
  EXPECT_THAT(tokens.offsets, ElementsAre(CodePointRange{0, 1}, CodePointRange{0, 2}));
}

TEST(WordPiece, WorksWithoutContinuationsAndWithoutMask) {
  const WordPieceTokenizer tokenizer(Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"}, "tiny"));
  EXPECT_THAT(words(tokenizer, "a aa [MASK]"), ElementsAre("a", "[UNK]", "[UNK]", "[UNK]", "[UNK]"));
}

TEST(WordPiece, IsIdentifiedByItsTokensAndSettings) {
  const auto identity = [](const TokenizerOptions& options) {
    return WordPieceTokenizer(small_vocabulary(), options).identity();
  };
  const TokenizerIdentity uncased = identity({});
  EXPECT_EQ(uncased.size, 15u);
  EXPECT_EQ(uncased, identity({.strip_accents = true})) << "the default with lower case";
  EXPECT_NE(uncased, identity({.strip_accents = false}));
  EXPECT_NE(uncased, identity({.do_lower_case = false, .strip_accents = true}));
  EXPECT_NE(uncased, identity({.do_lower_case = true, .strip_accents = {}, .tokenize_chinese_chars = false}));
  std::string lines;
  for (TokenId id = 0; id < 15; ++id) lines += small_vocabulary().token(id) + "\n";
  EXPECT_EQ(uncased.checksum, wordpiece_checksum(crc32c(std::as_bytes(std::span(lines))), {}));
  const WordPieceTokenizer shorter(Vocabulary({"[PAD]", "[UNK]", "[CLS]", "[SEP]"}, "shorter"));
  EXPECT_NE(uncased, shorter.identity());
  EXPECT_EQ(identity_text({15, 0xabc}), "a tokenizer of 15 tokens (CRC32C 00000abc)");
}

TEST(WordPiece, KnowsTheRolesOfSpecialTokens) {
  const WordPieceTokenizer tokenizer(small_vocabulary());
  EXPECT_EQ(tokenizer.special(SpecialToken::padding), 0);
  EXPECT_EQ(tokenizer.special(SpecialToken::unknown), 1);
  EXPECT_EQ(tokenizer.special(SpecialToken::first), 2);
  EXPECT_EQ(tokenizer.special(SpecialToken::separator), 3);
  EXPECT_EQ(tokenizer.special(SpecialToken::mask), 4);
  EXPECT_EQ(tests::error_of([&] { require_special(tokenizer, SpecialToken::end); }),
            "the model's tokenizer has no end token");
  EXPECT_TRUE(tokenizer.continues_word(6));
  EXPECT_FALSE(tokenizer.continues_word(5));
}

TEST(WordPiece, RefusesWhatIsNotUtf8) {
  const WordPieceTokenizer tokenizer(small_vocabulary());
  EXPECT_THAT(tests::error_of([&] { (void)tokenizer.tokenize("a \xC3"); }), HasSubstr("not UTF-8 at byte 2"));
}

TEST(WordPiece, OddUnicodeIsHuggingFaces) {
  const auto rows = tests::golden_lines("tokens.jsonl");
  ASSERT_GT(rows.size(), 500U);
  std::string switches;
  std::optional<WordPieceTokenizer> tokenizer;
  for (const auto& row : rows) {
    if (row[0] != switches) {
      switches = row[0];
      tokenizer.emplace(Vocabulary::load(FileReader(), tests::uncased_vocabulary()), parse_switches(switches));
    }
    const Tokens tokens = tokenizer->tokenize(row[1].get<std::string>());
    auto found = nlohmann::json::array();
    for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
      found.push_back({tokens.ids[i], tokens.offsets[i].begin, tokens.offsets[i].end});
    }
    ASSERT_EQ(found, row[2]) << switches << " " << row[1].dump(-1, ' ', true);
  }
}

/// Compares ids and pieces of the questions in `path`. Returns their number.
std::size_t compare_questions(const std::filesystem::path& path) {
  const WordPieceTokenizer tokenizer(Vocabulary::load(FileReader(), tests::uncased_vocabulary()));
  const auto rows = tests::json_lines(path);
  for (const auto& row : rows) {
    const auto text = row.at("text").get<std::string>();
    EXPECT_EQ(tokenizer.tokenize(text).ids, row.at("ids").get<std::vector<TokenId>>()) << text;
    EXPECT_EQ(words(tokenizer, text), row.at("tokens").get<std::vector<std::string>>()) << text;
  }
  return rows.size();
}

TEST(WordPiece, QuestionsOfTheExamplesAreHuggingFaces) {
  EXPECT_EQ(compare_questions(tests::golden_data() / "question_tokens.jsonl"), 1440U);
}

TEST(WordPiece, QuestionsAreHuggingFaces) {
  const auto path = tests::shared_data() / "tokenizer" / "questions.jsonl";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent (MYLOS_DATA)";
  EXPECT_EQ(compare_questions(path), 5000U);
}

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

/// The stages of a tokenizer.json, which know no shortcuts, give the same tokens of random texts: letters, blanks,
/// accents, controls and special tokens.
TEST(WordPiece, ShortcutsDoNotChangeTokens) {
  const Vocabulary vocabulary = mill_vocabulary();
  nlohmann::json json = {{"added_tokens", nlohmann::json::array()},
                         {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                         {"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"max_input_chars_per_word", 100}}}};
  for (std::size_t i = 0; i < vocabulary.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    json["model"]["vocab"][vocabulary.token(id)] = id;
    if (id < 4)
      json["added_tokens"].push_back(
          {{"id", id}, {"content", vocabulary.token(id)}, {"normalized", false}, {"special", true}});
  }
  std::minstd_rand generator(7);
  for (const bool lower : {true, false}) {
    for (const bool chinese : {true, false}) {
      const WordPieceTokenizer tokenizer(
          vocabulary, {.do_lower_case = lower, .strip_accents = {}, .tokenize_chinese_chars = chinese});
      json["normalizer"] = {{"type", "BertNormalizer"}, {"lowercase", lower}, {"handle_chinese_chars", chinese}};
      const JsonTokenizer plain(json.dump(), "tokenizer.json");
      for (int i = 0; i < 5000; ++i) {
        const std::string text = random_text(generator);
        const Tokens tokens = tokenizer.tokenize(text), expected = plain.tokenize(text);
        ASSERT_EQ(tokens.ids, expected.ids) << text;
        ASSERT_EQ(tokens.offsets, expected.offsets) << text;
      }
    }
  }
}

}  // namespace
}  // namespace mylos::data
