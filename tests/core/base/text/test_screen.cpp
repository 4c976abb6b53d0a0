#include "core/base/text/screen.hpp"

#include <gtest/gtest.h>

namespace mylos {
namespace {

TEST(Screen, LinesAreCutWhereTheyWouldWrap) {
  EXPECT_EQ(fitted("abcdef\nab\n\nabc\n", 3, 10), "abc\nab\n\nabc\n");
  EXPECT_EQ(fitted("abc", 3, 10), "abc\n");
  EXPECT_EQ(fitted("", 3, 10), "");
}

TEST(Screen, ARowIsLeftForTheCursor) {
  EXPECT_EQ(fitted("a\nb\nc\n", 80, 3), "a\nb\n");
  EXPECT_EQ(fitted("a\nb\nc\n", 80, 4), "a\nb\nc\n");
}

TEST(Screen, OfAWindowWithoutSizeNothingIsCut) { EXPECT_EQ(fitted("abcdef\nb\n", 0, 0), "abcdef\nb\n"); }

}  // namespace
}  // namespace mylos
