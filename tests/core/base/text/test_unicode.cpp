#include "core/base/text/unicode.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary.hpp"

namespace mylos {
namespace {

using tests::error_of;

TEST(Unicode, FindsTheFirstByteThatIsNotUtf8) {
  EXPECT_EQ(first_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("plain ascii, long enough for whole words"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("é中😀 mixed with ascii é"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("\xFF"), 0U);
  EXPECT_EQ(first_invalid_utf8("12345678\x80"), 8U);
  EXPECT_EQ(first_invalid_utf8("cut \xE4\xB8"), 4U);                 // truncated
  EXPECT_EQ(first_invalid_utf8("surrogate \xED\xA0\x80"), 10U);      // U+D800
  EXPECT_EQ(first_invalid_utf8("overlong \xC0\xAF"), 9U);            // '/' in two bytes
  EXPECT_EQ(first_invalid_utf8("too large \xF4\x90\x80\x80"), 10U);  // U+110000
  EXPECT_EQ(first_invalid_utf8("latin-1: caf\xE9 in the middle"), 12U);
}

TEST(Unicode, EnsureUtf8NamesTheTextAndTheByte) {
  EXPECT_NO_THROW(ensure_utf8("é", "x"));
  EXPECT_EQ(error_of([] { ensure_utf8("ab\xFFz", "file.txt"); }), "file.txt: not UTF-8 at byte 2; convert it to UTF-8");
}

TEST(Unicode, DecodesAndEncodesEveryLength) {
  const std::u32string text = U"a\u00e9\u4e2d\U0001f600\U0010ffff";
  EXPECT_EQ(decode_utf8(encode_utf8(text)), text);
  EXPECT_EQ(encode_utf8(text), "aé中😀\xF4\x8F\xBF\xBF");
}

TEST(Unicode, CountsAndCutsByCodePoints) {
  const std::string_view text = "aé中😀z";
  EXPECT_EQ(count_code_points(text), 5U);
  EXPECT_EQ(slice_code_points(text, {1, 4}), "é中😀");
  EXPECT_EQ(slice_code_points(text, {0, 0}), "");
  EXPECT_EQ(slice_code_points(text, {4, 99}), "z");
  EXPECT_EQ(slice_code_points(text, {9, 12}), "");
  EXPECT_EQ(slice_code_points(text, {3, 1}), "");
}

TEST(Unicode, FirstAndLastCharactersAreWhole) {
  EXPECT_EQ(first_character("é中"), "é");
  EXPECT_EQ(last_character("é中"), "中");
  EXPECT_EQ(last_character("é"), "é");
  EXPECT_EQ(first_character(""), "");
  EXPECT_EQ(last_character(""), "");
}

}  // namespace
}  // namespace mylos
