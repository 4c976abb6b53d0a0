#include "core/base/text/python_text.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "core/base/text/unicode.hpp"
#include "tests/support/golden.hpp"

namespace mylos {
namespace {

/// Steps through ascending ranges together with ascending code points.
class Ranges {
 public:
  explicit Ranges(nlohmann::json ranges) : ranges_(std::move(ranges)) {}
  bool contains(char32_t c) {
    while (at_ < ranges_.size() && ranges_[at_][1].get<char32_t>() < c) ++at_;
    return at_ < ranges_.size() && ranges_[at_][0].get<char32_t>() <= c;
  }

 private:
  nlohmann::json ranges_;
  std::size_t at_ = 0;
};

/// Compares a class on every code point known to the Unicode version of the recording Python.
void expect_python_class(const char* name, const std::function<bool(char32_t)>& is_member) {
  const auto golden = tests::golden_json("python_text.json");
  Ranges expected(golden.at(name));
  Ranges unassigned(golden.at("unassigned"));
  for (char32_t c = 0; c < 0x110000; ++c) {
    if ((c >= 0xD800 && c < 0xE000) || unassigned.contains(c)) continue;
    ASSERT_EQ(is_member(c), expected.contains(c)) << name << " U+" << std::hex << static_cast<unsigned>(c);
  }
}

TEST(PythonText, SpacesArePythons) { expect_python_class("space", is_python_space); }

TEST(PythonText, WordCharactersArePythons) { expect_python_class("word", is_python_word); }

TEST(PythonText, PrintableCharactersArePythons) { expect_python_class("printable", is_python_printable); }

TEST(PythonText, LowerCaseIsPythons) {
  const auto golden = tests::golden_json("python_text.json");
  for (const auto& pair : golden.at("lower")) {
    EXPECT_EQ(encode_utf8(python_lower(decode_utf8(pair[0].get<std::string>()))), pair[1].get<std::string>());
  }
}

TEST(PythonText, LstripIsPythons) {
  EXPECT_EQ(python_lstrip(" \t\u00a0\u3000\x1f what ?\n"), "what ?\n");
  EXPECT_EQ(python_lstrip("é"), "é");
  EXPECT_EQ(python_lstrip("\u200b x"), "\u200b x");  // zero width, which is not white space in Python
  EXPECT_EQ(python_lstrip(" \u2028"), "");
}

TEST(PythonText, ReprIsPythons) {
  const auto golden = tests::golden_json("python_text.json");
  for (const auto& pair : golden.at("repr")) {
    EXPECT_EQ(python_repr(pair[0].get<double>()), pair[1].get<std::string>());
  }
}

}  // namespace
}  // namespace mylos
