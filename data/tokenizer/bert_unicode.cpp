#include "data/tokenizer/bert_unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace mylos::data {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Where the newest Unicode and `tokenizers` differ; a range also spans code points on which both agree, so each table
// only overrules a "yes" of utf8proc. Recorded by scripts/record/unicode_classes.py, which prints these tables.
constexpr std::array newer_marks = {
    Range{0x5C8, 0x5C9},     Range{0x7FD, 0x7FD},     Range{0x897, 0x8E1},     Range{0x9FE, 0x9FE},
    Range{0xAFA, 0xAFF},     Range{0xB53, 0xB55},     Range{0xC04, 0xC3C},     Range{0xD00, 0xD00},
    Range{0xD3B, 0xD3C},     Range{0xD81, 0xD81},     Range{0xEBA, 0xEBA},     Range{0xECE, 0xECE},
    Range{0x180F, 0x1886},   Range{0x1ABF, 0x1AF0},   Range{0x1DF6, 0x1DFB},   Range{0xA82C, 0xA82C},
    Range{0xA8C5, 0xA8C5},   Range{0xA8FF, 0xA8FF},   Range{0xA9BD, 0xA9BD},   Range{0x10D24, 0x10F85},
    Range{0x11070, 0x11074}, Range{0x110C2, 0x110C2}, Range{0x111C9, 0x111C9}, Range{0x111CF, 0x111CF},
    Range{0x1123E, 0x11241}, Range{0x1133B, 0x1133B}, Range{0x113BB, 0x1145E}, Range{0x1182F, 0x1612F},
    Range{0x16F4F, 0x16F4F}, Range{0x16FE4, 0x16FE4}, Range{0x1CF00, 0x1D128}, Range{0x1D25B, 0x1D25C},
    Range{0x1E000, 0x1E6F5}, Range{0x1E944, 0x1E94A}};
constexpr std::array newer_punctuation = {Range{0x61D, 0x61D},     Range{0x9FD, 0xA76},     Range{0xC77, 0xC84},
                                          Range{0x1B4E, 0x1B4F},   Range{0x1B7D, 0x1B7F},   Range{0x2E43, 0x2E63},
                                          Range{0x10D6E, 0x10F89}, Range{0x113D4, 0x1145D}, Range{0x11660, 0x116B9},
                                          Range{0x1183B, 0x11FFF}, Range{0x12FF1, 0x12FF2}, Range{0x16D6D, 0x16FE2},
                                          Range{0x1E5FF, 0x1E95F}};
constexpr std::array newer_controls = {Range{0x890, 0x8E2}, Range{0x110CD, 0x1343F}};
constexpr std::array newer_classes = {
    Range{0x5C8, 0x5C9},     Range{0x7FD, 0x7FD},     Range{0x897, 0x8D3},     Range{0x9FE, 0x9FE},
    Range{0xC3C, 0xC3C},     Range{0xD3B, 0xD3C},     Range{0xEBA, 0xEBA},     Range{0x1715, 0x1715},
    Range{0x1ABF, 0x1AF0},   Range{0x1DF6, 0x1DFA},   Range{0xA82C, 0xA82C},   Range{0x10D24, 0x10F85},
    Range{0x11070, 0x11070}, Range{0x1133B, 0x1133B}, Range{0x113CE, 0x113D0}, Range{0x1145E, 0x1145E},
    Range{0x11839, 0x11A99}, Range{0x11D42, 0x1612F}, Range{0x16FF0, 0x16FF1}, Range{0x1D127, 0x1D128},
    Range{0x1D250, 0x1D281}, Range{0x1E08F, 0x1E6F5}};
constexpr std::array newer_decompositions = {Range{0x105C9, 0x105E4}, Range{0x11383, 0x113C8}, Range{0x11938, 0x16D6A}};
constexpr std::array chinese = {Range{0x3400, 0x4DBF},   Range{0x4E00, 0x9FFF},   Range{0xF900, 0xFAFF},
                                Range{0x20000, 0x2A6DF}, Range{0x2A700, 0x2B81F}, Range{0x2B920, 0x2CEAF},
                                Range{0x2F800, 0x2FA1F}};

/// Capital letters of Unicode 16 and 17, which older releases of utf8proc do not lower.
struct Lowering {
  char32_t upper;
  char32_t lower;
};
constexpr std::array newer_lowerings = {Lowering{0x1C89, 0x1C8A}, Lowering{0xA7CB, 0x264},  Lowering{0xA7CC, 0xA7CD},
                                        Lowering{0xA7CE, 0xA7CF}, Lowering{0xA7D2, 0xA7D3}, Lowering{0xA7D4, 0xA7D5},
                                        Lowering{0xA7DA, 0xA7DB}, Lowering{0xA7DC, 0x19B}};

template <std::size_t N>
bool contains(const std::array<Range, N>& ranges, char32_t c) {
  const auto range =
      std::lower_bound(ranges.begin(), ranges.end(), c, [](const Range& r, char32_t value) { return r.last < value; });
  return range != ranges.end() && range->first <= c;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_ascii_symbol(char32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
}

char32_t newer_lowering(char32_t c) {
  if (c >= 0x10D50 && c <= 0x10D65) return c + 0x20;
  if (c >= 0x16EA0 && c <= 0x16EB8) return c + 0x1B;
  for (const Lowering& lowering : newer_lowerings) {
    if (lowering.upper == c) return lowering.lower;
  }
  return c;
}

}  // namespace

bool is_removed_by_bert(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c == 0xFFFD) return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
      return !contains(newer_controls, c);
    default:
      return false;
  }
}

bool is_bert_whitespace(char32_t c) {
  if ((c >= 0x9 && c <= 0xD) || c == 0x20 || c == 0x85) return true;
  if (c < 0xA0) return false;
  const utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL || kind == UTF8PROC_CATEGORY_ZP;
}

bool is_chinese(char32_t c) { return c >= 0x3400 && contains(chinese, c); }

bool is_bert_punctuation(char32_t c) {
  if (c < 0x80) return is_ascii_symbol(c);
  if (c == 0x166D || c == 0x111C9) return true;  // punctuation in Unicode 8, not in later ones
  const utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO && !contains(newer_punctuation, c);
}

bool is_nonspacing_mark(char32_t c) {
  if (c < 0x300) return false;
  if (c == 0x1734 || c == 0x1171E) return true;  // nonspacing in Unicode 8, spacing in later ones
  return category(c) == UTF8PROC_CATEGORY_MN && !contains(newer_marks, c);
}

int combining_class(char32_t c) {
  if (c < 0x300) return 0;
  const int combining = utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
  return combining == 0 || contains(newer_classes, c) ? 0 : combining;
}

std::size_t decompose(char32_t c, std::span<char32_t, max_decomposition> out) {
  out[0] = c;
  if (c < 0xC0 || contains(newer_decompositions, c)) return 1;
  utf8proc_int32_t parts[max_decomposition];
  int boundary_state = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, max_decomposition,
                                                         UTF8PROC_DECOMPOSE, &boundary_state);
  if (count < 1 || count > static_cast<utf8proc_ssize_t>(max_decomposition)) return 1;
  std::transform(parts, parts + count, out.begin(), [](utf8proc_int32_t part) { return static_cast<char32_t>(part); });
  return static_cast<std::size_t>(count);
}

std::size_t to_lower(char32_t c, std::span<char32_t, 2> out) {
  if (c == 0x130) {  // the one letter whose lower case is two code points
    out[0] = 'i';
    out[1] = 0x307;
    return 2;
  }
  const auto lower = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  out[0] = lower == c ? newer_lowering(c) : lower;
  return 1;
}

}  // namespace mylos::data
