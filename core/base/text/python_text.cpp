#include "core/base/text/python_text.hpp"

#include <fmt/format.h>
#include <utf8proc.h>

#include <cstddef>

#include "core/base/text/unicode.hpp"

namespace mylos {
namespace {

constexpr char32_t capital_sigma = 0x3A3;

utf8proc_category_t category_of(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

/// Unicode's Case_Ignorable: marks, formats, modifiers, and the punctuation that Word_Break allows inside words.
bool is_case_ignorable(char32_t c) {
  constexpr std::u32string_view inside_words =
      U"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return inside_words.find(c) != std::u32string_view::npos;
  }
}

/// Unicode's Cased, for code points that are not Case_Ignorable.
bool is_cased(char32_t c) {
  const utf8proc_category_t kind = category_of(c);
  if (kind == UTF8PROC_CATEGORY_LU || kind == UTF8PROC_CATEGORY_LL || kind == UTF8PROC_CATEGORY_LT) return true;
  return c == 0xAA || c == 0xBA || (c >= 0x2160 && c <= 0x217F) || (c >= 0x24B6 && c <= 0x24E9) ||
         (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

/// Unicode's Final_Sigma: a cased letter before and none after, skipping case-ignorable characters.
bool is_final_sigma(std::u32string_view text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  std::size_t after = at + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

}  // namespace

bool is_python_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x9 && c <= 0xD) || (c >= 0x1C && c <= 0x1F);
  const utf8proc_category_t kind = category_of(c);
  return c == 0x85 || kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL || kind == UTF8PROC_CATEGORY_ZP;
}

bool is_python_word(char32_t c) {
  if (c == '_') return true;
  const utf8proc_category_t kind = category_of(c);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO) ||
         (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO);
}

bool is_python_printable(char32_t c) {
  const utf8proc_category_t kind = category_of(c);
  return c == ' ' || (kind != UTF8PROC_CATEGORY_CN && kind < UTF8PROC_CATEGORY_ZS);
}

std::u32string python_lower(std::u32string_view text) {
  std::u32string lowered;
  lowered.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == 0x130) {
      lowered += U"i\u0307";
    } else if (text[i] == capital_sigma && is_final_sigma(text, i)) {
      lowered.push_back(0x3C2);
    } else {
      lowered.push_back(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(text[i]))));
    }
  }
  return lowered;
}

std::string_view python_lstrip(std::string_view text) {
  std::size_t position = 0;
  while (position < text.size()) {
    std::size_t next = position;
    if (!is_python_space(decode_code_point(text, next))) break;
    position = next;
  }
  return text.substr(position);
}

std::string python_repr(double value) {
  std::string text = fmt::format("{}", value);
  const bool is_whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return is_whole ? text + ".0" : text;
}

}  // namespace mylos
