#include "data/images/image_marks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mylos::data {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ImageMarks, AnotherChecksumIsNoticedAndNotTaken) {
  ImageMarks marks(3);
  EXPECT_TRUE(marks.note(1, mark_of(7, 5)));
  EXPECT_TRUE(marks.note(1, mark_of(7, 6))) << "only its time has changed";
  EXPECT_EQ(marks[1].stamp, 6u);
  EXPECT_FALSE(marks.note(1, mark_of(8, 6)));
  EXPECT_EQ(marks[1].checksum, 7u);
  EXPECT_TRUE(marks.note(2, mark_of(0)));
  EXPECT_EQ(marks[2].checksum, 1u) << "0 means unknown";
}

TEST(ImageMarks, WhatOtherRanksNotedIsAddedOnce) {
  ImageMarks first(4), second(4);
  first.note(0, mark_of(10, 1));
  second.note(0, mark_of(10, 2));
  second.note(3, mark_of(13, 2));
  second.note(3, {.is_damaged = 1});
  EXPECT_THAT(first.add(second.take_noted()), IsEmpty());
  EXPECT_EQ(second.take_noted(), "");
  EXPECT_EQ(first[3].checksum, 13u);
  EXPECT_THAT(first.damaged(), ElementsAre(3));
  second.note(3, mark_of(13, 3));
  EXPECT_EQ(second.take_noted(), "") << "nothing new";
  ImageMarks third(4);
  third.note(0, mark_of(11, 1));
  EXPECT_THAT(first.add(third.take_noted()), ElementsAre(0));
}

TEST(ImageMarks, TheTextIsComplete) {
  ImageMarks marks(2), other(2), larger(3);
  marks.note(0, mark_of(0x0a0d0000, 0x7fffffff));
  marks.note(1, {.is_damaged = 1});
  const std::string text = marks.text();
  EXPECT_TRUE(other.read(text));
  EXPECT_EQ(other.text(), text);
  EXPECT_FALSE(larger.read(text));
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    EXPECT_FALSE(other.read(damaged)) << i;
    EXPECT_FALSE(other.read(text.substr(0, i))) << i;
  }
  EXPECT_EQ(other.text(), text) << "unchanged";
}

}  // namespace
}  // namespace mylos::data
