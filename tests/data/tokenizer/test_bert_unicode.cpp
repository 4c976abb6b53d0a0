#include "data/tokenizer/bert_unicode.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <span>

#include "tests/support/golden.hpp"

namespace mylos::data {
namespace {

constexpr char32_t end_of_unicode = 0x110000;

bool is_surrogate(char32_t c) { return c >= 0xD800 && c < 0xE000; }

/// Compares a class with its recorded ranges on every code point.
void expect_class(const char* name, const std::function<bool(char32_t)>& is_member) {
  const auto ranges = tests::golden_json("unicode_classes.json").at(name);
  ASSERT_GT(ranges.size(), 0U);
  std::size_t range = 0;
  for (char32_t c = 0; c < end_of_unicode; ++c) {
    if (is_surrogate(c)) continue;
    while (range < ranges.size() && ranges[range][1].get<char32_t>() < c) ++range;
    const bool expected = range < ranges.size() && ranges[range][0].get<char32_t>() <= c;
    ASSERT_EQ(is_member(c), expected) << name << " U+" << std::hex << static_cast<unsigned>(c);
  }
}

TEST(BertUnicode, RemovesWhatHuggingFaceRemoves) { expect_class("removed", is_removed_by_bert); }

TEST(BertUnicode, WhitespaceIsHuggingFaces) {
  // White-space controls are deleted before white space is handled.
  expect_class("whitespace", [](char32_t c) { return is_bert_whitespace(c) && !is_removed_by_bert(c); });
}

TEST(BertUnicode, ChineseIsHuggingFaces) { expect_class("chinese", is_chinese); }

TEST(BertUnicode, PunctuationIsHuggingFaces) { expect_class("punctuation", is_bert_punctuation); }

TEST(BertUnicode, MarksAreHuggingFaces) { expect_class("marks", is_nonspacing_mark); }

/// Compares the image of every character under `map(c, image)`, which returns the image's length, with the recorded
/// images. Neither includes characters that map to themselves.
template <class Map>
void expect_images(const char* name, Map map) {
  const auto expected = tests::golden_json("unicode_classes.json").at(name);
  tests::Digest digest;
  std::size_t count = 0;
  for (char32_t c = 0; c < end_of_unicode; ++c) {
    std::array<char32_t, max_decomposition> image{};
    const std::size_t length = map(c, std::span(image));
    if (is_surrogate(c) || (length == 1 && image[0] == c)) continue;
    digest.add(c);
    for (std::size_t i = 0; i < length; ++i) digest.add(image[i]);
    ++count;
  }
  EXPECT_EQ(count, expected.at("count"));
  EXPECT_EQ(digest.hexadecimal(), expected.at("digest").get<std::string>());
}

TEST(BertUnicode, LowerCaseIsHuggingFaces) {
  expect_images("lower",
                [](char32_t c, std::span<char32_t, max_decomposition> image) { return to_lower(c, image.first<2>()); });
}

TEST(BertUnicode, CombiningMarksAreHuggingFaces) { expect_class("combining_marks", is_combining_mark); }

TEST(BertUnicode, DecompositionIsHuggingFaces) {
  for (const bool compatible : {false, true}) {
    expect_images(compatible ? "compatible_decomposition" : "decomposition",
                  [compatible](char32_t c, std::span<char32_t, max_decomposition> image) {
                    return decompose(c, image, compatible);
                  });
  }
}

TEST(BertUnicode, ComposesWhatHuggingFaceComposes) {
  EXPECT_EQ(compose('e', 0x301), 0xE9U);
  EXPECT_EQ(compose(0x1100, 0x1161), 0xAC00U);
  EXPECT_EQ(compose('e', 'e'), 0U);
  EXPECT_EQ(compose(0x11935, 0x11930), 0U);  // newer than the tables of `tokenizers`
}

TEST(BertUnicode, CombiningClassesOrderMarks) {
  EXPECT_EQ(combining_class('a'), 0);
  EXPECT_EQ(combining_class(0x301), 230);
  EXPECT_EQ(combining_class(0x323), 220);
  EXPECT_EQ(combining_class(0x1E2AE), 0);  // newer than the tables of `tokenizers`
}

}  // namespace
}  // namespace mylos::data
