#include "core/base/text/printable.hpp"

#include <gtest/gtest.h>

namespace mylos {
namespace {

TEST(Printable, EscapesControlCharactersAndCuts) {
  EXPECT_EQ(printable("a\n\x1b]\x7f"), "a\\x0a\\x1b]\\x7f");
  EXPECT_EQ(printable("a\xc2\x9bm\x9b"), "a\\xc2\\x9bm\\x9b");
  EXPECT_EQ(printable("fa\xc3\xa7"
                      "ade \xe2\x82\xac"),
            "fa\xc3\xa7"
            "ade \xe2\x82\xac");
  EXPECT_EQ(printable(std::string(80, 'x')), std::string(80, 'x'));
  EXPECT_EQ(printable(std::string(81, 'x')), std::string(80, 'x') + "...");
}

TEST(Printable, WithoutControlsKeepsTextNewlinesAndTabs) {
  const std::string text = "a\tb\nna\xc3\xafve \xe2\x82\xac \xf0\x9f\x98\x80 \xc2\xa0";
  EXPECT_EQ(without_controls(text), text);
  EXPECT_EQ(without_controls(""), "");
  EXPECT_EQ(without_controls("\xff\xc3"), "\xff\xc3") << "names of files need not be UTF-8";
}

TEST(Printable, WithoutControlsDropsC0DelAndC1) {
  EXPECT_EQ(without_controls("a\x1b]52;c;aGk=\x07z\r\b"), "a]52;c;aGk=z");
  EXPECT_EQ(without_controls(std::string_view("a\0\x7f", 3)), "a");
  EXPECT_EQ(without_controls("\xc2\x9b"
                             "1m\xc2\x80\xc2\x9f"),
            "1m");
  EXPECT_EQ(without_controls("\x9d"
                             "52;\x9c"),
            "52;")
      << "bytes that are no UTF-8";
  EXPECT_EQ(without_controls("\xc3\xa9\x9b\xc2"), "\xc3\xa9\xc2");
  EXPECT_EQ(without_controls("\xe0\x82\x9b").find('\x9b'), std::string::npos) << "a longer form than needed";
}

TEST(Printable, JsonKeepsItsValues) {
  EXPECT_EQ(json_without_controls("{\n  \"a\": \"\xc2\x85\x7f\xc3\xa9\"\n}"),
            "{\n  \"a\": \"\\u0085\\u007f\xc3\xa9\"\n}");
}

TEST(Printable, PutsMessagesOnOneLine) { EXPECT_EQ(on_one_line("one\ntwo \n"), "one two"); }

}  // namespace
}  // namespace mylos
