#include "data/tokenizer/json/character_classes.hpp"

#include <utf8proc.h>

namespace mylos::data {
namespace {

utf8proc_category_t category_of(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

/// Letters in circles and squares, which are alphabetic but symbols by their category.
bool is_enclosed_letter(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

}  // namespace

bool is_word_character(char32_t c) {
  switch (category_of(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return c == 0x200C || c == 0x200D || is_enclosed_letter(c);
  }
}

bool is_numeric(char32_t c) {
  const utf8proc_category_t kind = category_of(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO;
}

bool begins_grapheme(char32_t before, char32_t c, int& state) {
  utf8proc_int32_t packed = state;
  const bool breaks = utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(before),
                                                       static_cast<utf8proc_int32_t>(c), &packed);
  state = packed;
  return breaks;
}

}  // namespace mylos::data
