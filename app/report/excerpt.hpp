#pragma once

#include "core/base/unicode.hpp"

#include <string>
#include <string_view>

/// The part of a text that shows an answer to a reader.
namespace mylos::app {

struct Excerpt {
  std::string before, answer, after;
  std::string text() const { return before + answer + after; }
};

/// The sentence, or sentences, that `range` of `context` (well-formed UTF-8) is in, on one line; cut with "..." where
/// it goes on for more than 160 characters to either side.
Excerpt sentence_around(std::string_view context, CodePointRange range);

/// `text` with line breaks, tabs and other controls as spaces.
std::string on_one_line(std::string_view text);

}  // namespace mylos::app
