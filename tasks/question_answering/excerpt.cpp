#include "tasks/question_answering/excerpt.hpp"

#include <algorithm>

namespace mylos::tasks {
namespace {

constexpr std::size_t longest_side = 160;

bool is_space(char32_t c) { return c == U' ' || (c >= U'\t' && c <= U'\r') || c == U'\u00a0'; }

/// Returns whether a sentence may end between code points i - 1 and i. Abbreviations end some sentences too early,
/// which is harmless.
bool is_boundary(std::u32string_view text, std::size_t i) {
  constexpr std::u32string_view terminators = U".!?\u3002\uff01\uff1f";
  if (i == 0 || i == text.size()) return true;
  if (text[i - 1] == U'\n') return true;
  return is_space(text[i]) && terminators.find(text[i - 1]) != terminators.npos;
}

std::string one_line(std::u32string_view text) {
  std::u32string line(text);
  std::ranges::replace_if(
      line, [](char32_t c) { return c < 0x20 || (c >= 0x7f && c < 0xa0); }, U' ');
  return encode_utf8(line);
}

}  // namespace

Excerpt sentence_around(std::string_view context, CodePointRange range) {
  const std::u32string text = decode_utf8(context);
  const std::size_t answer_begin = std::min<std::size_t>(range.begin, text.size());
  const std::size_t answer_end = std::clamp<std::size_t>(range.end, answer_begin, text.size());
  std::size_t begin = answer_begin, end = answer_end;
  while (!is_boundary(text, begin) && answer_begin - begin < longest_side) --begin;
  // If the answer ends its sentence, nothing of the sentence follows it.
  while (!is_boundary(text, end) && end - answer_end < longest_side) ++end;
  const bool cut_begin = !is_boundary(text, begin), cut_end = !is_boundary(text, end);
  while (begin < answer_begin && is_space(text[begin])) ++begin;
  while (end > answer_end && is_space(text[end - 1])) --end;
  const std::u32string_view view = text;
  return {.before = (cut_begin ? "..." : "") + one_line(view.substr(begin, answer_begin - begin)),
          .answer = one_line(view.substr(answer_begin, answer_end - answer_begin)),
          .after = one_line(view.substr(answer_end, end - answer_end)) + (cut_end ? "..." : "")};
}

std::string on_one_line(std::string_view text) { return one_line(decode_utf8(text)); }

}  // namespace mylos::tasks
