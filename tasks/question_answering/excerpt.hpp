#pragma once

#include "core/base/text/unicode.hpp"

#include <string>
#include <string_view>

/// The part of a text that shows an answer in context.
namespace mylos::tasks {

struct Excerpt {
  std::string before, answer, after;
  std::string text() const { return before + answer + after; }
};

/// Returns, on one line, the sentence or sentences of `context` (well-formed UTF-8) that contain `range`. A side longer
/// than 160 characters is cut with "...".
Excerpt sentence_around(std::string_view context, CodePointRange range);

/// Returns `text` with line breaks, tabs and other control characters replaced by spaces.
std::string on_one_line(std::string_view text);

}  // namespace mylos::tasks
