#include "core/base/files/text_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary.hpp"

namespace mylos {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using tests::error_of;

TEST(TextFile, ReadsAndDropsAByteOrderMark) {
  const tests::TemporaryDirectory directory;
  tests::write_file(directory / "text", "\xEF\xBB\xBFtwo\nlines");
  EXPECT_EQ(read_text_file(directory / "text"), "two\nlines");
}

TEST(TextFile, NamesWhatItCannotRead) {
  const tests::TemporaryDirectory directory;
  EXPECT_THAT(error_of([&] { read_text_file(directory / "none"); }), HasSubstr("none: No such file"));
  EXPECT_THAT(error_of([&] { read_text_file(directory.path()); }), HasSubstr("directory"));
  tests::write_file(directory / "empty", "");
  EXPECT_THAT(error_of([&] { read_text_file(directory / "empty"); }), EndsWith("empty: the file is empty"));
  tests::write_file(directory / "blank", " \r\n\t");
  EXPECT_THAT(error_of([&] { read_text_file(directory / "blank"); }), EndsWith("blank: the file is empty"));
  tests::write_file(directory / "train.json.gz", "\x1F\x8B\x08 and so on");
  EXPECT_THAT(error_of([&] { read_text_file(directory / "train.json.gz"); }),
              EndsWith("train.json.gz: gzip-compressed: decompress it first"));
  tests::write_file(directory / "latin1", "caf\xE9");
  EXPECT_THAT(error_of([&] { read_text_file(directory / "latin1"); }), HasSubstr("latin1: not UTF-8 at byte 3"));
}

TEST(TextFile, SplitsLinesOfBothKinds) {
  EXPECT_THAT(split_lines("a\nb\r\n\nc"), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(split_lines("a\n"), ElementsAre("a"));
  EXPECT_TRUE(split_lines("").empty());
}

}  // namespace
}  // namespace mylos
