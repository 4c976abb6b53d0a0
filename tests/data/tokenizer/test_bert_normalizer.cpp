#include "data/tokenizer/bert_normalizer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace mylos::data {
namespace {

/// Returns the normalised text, and "begin-end" of every code point.
std::pair<std::string, std::string> normalized(BertNormalizer::Options options, std::string_view text) {
  BertNormalizer normalizer(options);
  std::pair<std::string, std::string> result;
  for (const NormalizedChar& c : normalizer.normalize(text, 10)) {
    append_utf8(result.first, c.code_point);
    result.second += fmt::format("{}-{} ", c.origin.begin, c.origin.end);
  }
  return result;
}

using Pair = std::pair<std::string, std::string>;
constexpr BertNormalizer::Options uncased = {true, true, true};
constexpr BertNormalizer::Options cased = {false, false, true};

TEST(BertNormalizer, DropsAccentsAndLowersWhereAsked) {
  EXPECT_EQ(normalized(uncased, "Éa\u0301"), Pair("ea", "10-11 11-12 "));
  EXPECT_EQ(normalized(cased, "É"), Pair("É", "10-11 "));
  EXPECT_EQ(normalized({true, false, true}, "É"), Pair("é", "10-11 "));
  EXPECT_EQ(normalized({false, true, true}, "É"), Pair("E", "10-11 "));
}

TEST(BertNormalizer, CleansControlsAndWhiteSpace) {
  EXPECT_EQ(normalized(cased, "a\x01\u200b\u00a0z"), Pair("a z", "10-11 13-14 14-15 "));
  EXPECT_EQ(normalized(cased, "\ufffd\xEF\xBB\xBF"), Pair("", ""));
}

TEST(BertNormalizer, PutsSpacesAroundChinese) {
  EXPECT_EQ(normalized(uncased, "a中"), Pair("a 中 ", "10-11 11-12 11-12 11-12 "));
  EXPECT_EQ(normalized({true, true, false}, "a中"), Pair("a中", "10-11 11-12 "));
}

TEST(BertNormalizer, OneLetterMayBecomeTwo) {
  EXPECT_EQ(normalized({true, false, true}, "\u0130"), Pair("i\u0307", "10-11 10-11 "));
  EXPECT_EQ(normalized(uncased, "가"), Pair("\u1100\u1161", "10-11 10-11 "));
}

}  // namespace
}  // namespace mylos::data
