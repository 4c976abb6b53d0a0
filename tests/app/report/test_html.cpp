#include "app/report/html.hpp"

#include "tests/support/temporary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace mylos::app {
namespace {

using ::testing::HasSubstr;

TEST(Html, TextIsEscaped) {
  EXPECT_EQ(escape_html("<script>\"a\" & 'b'</script>"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;");
  EXPECT_EQ(escape_html("caf\xc3\xa9\n\t"), "caf\xc3\xa9\n\t");
  EXPECT_EQ(escape_html(std::string_view("a\0b\x1b", 4)),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd");
}

// Browsers treat a page with such a character as malformed XML.
TEST(Html, WhatIsNoCharacterIsReplaced) {
  EXPECT_EQ(escape_html("a\xef\xbf\xbe"
                        "b\xef\xbf\xbf"),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd");
  EXPECT_EQ(escape_html("\xef\xbf\xbc"), "\xef\xbf\xbc");
}

TEST(Html, BytesThatAreNoTextAreReplaced) { EXPECT_EQ(escape_html("a\xff<\xc3"), "a\xef\xbf\xbd&lt;\xef\xbf\xbd"); }

TEST(Html, ElementsHoldMarkupOrText) {
  EXPECT_EQ(element("p", "class=\"x\"", "<b>1</b>"), "<p class=\"x\"><b>1</b></p>");
  EXPECT_EQ(text_element("p", "", "1 < 2"), "<p>1 &lt; 2</p>");
}

TEST(Html, BytesAreWrittenAsBase64) {
  EXPECT_EQ(base64_text(""), "");
  EXPECT_EQ(base64_text("f"), "Zg==");
  EXPECT_EQ(base64_text("fo"), "Zm8=");
  EXPECT_EQ(base64_text("foo"), "Zm9v");
  EXPECT_EQ(base64_text("\xff\xfe\xfd\xfb"), "//79+w==");
}

TEST(Html, ATableHasItsCellsEscaped) {
  HtmlTable table({"<name>", "n"});
  EXPECT_TRUE(table.empty());
  table.add({"a & b", "1"});
  EXPECT_THAT(table.html(), HasSubstr("<th scope=\"col\">&lt;name&gt;</th><th scope=\"col\" class=\"n\">n</th>"));
  EXPECT_THAT(table.html(), HasSubstr("<tr><th scope=\"row\">a &amp; b</th><td class=\"n\">1</td></tr>"));
  EXPECT_THAT(tests::error_of([&] { table.add({"a"}); }), HasSubstr("1 cells in 2 columns"));
}

TEST(Html, NumbersForPeople) {
  EXPECT_EQ(number_text(0.0), "0");
  EXPECT_EQ(number_text(1.23456), "1.235");
  EXPECT_EQ(number_text(3e-5), "3e-05");
  EXPECT_EQ(number_text(9999.0), "9999");
  EXPECT_EQ(number_text(1234567.4), "1,234,567");
  EXPECT_EQ(number_text(-12345.0), "-12,345");
  EXPECT_EQ(number_text(1e300), "1e+300");
  EXPECT_EQ(number_text(std::nan("")), "\xe2\x80\x93");
}

}  // namespace
}  // namespace mylos::app
