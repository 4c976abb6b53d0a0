#include "tasks/language_modeling/generated_text.hpp"

#include "core/base/text/unicode.hpp"

#include <algorithm>
#include <string_view>

namespace mylos::tasks {
namespace {

constexpr std::size_t longest_character = 4;  // bytes of UTF-8

/// Returns the length in bytes of the character that begins with `byte`; 1 if no character begins with it.
std::size_t character_length(unsigned char byte) {
  if (byte >= 0xF8U) return 1;
  if (byte >= 0xF0U) return 4;
  if (byte >= 0xE0U) return 3;
  return byte >= 0xC0U ? 2 : 1;
}

/// Returns `text` without the characters that begin both it and `other`.
std::string without_beginning(const std::string& text, std::string_view other) {
  auto same = static_cast<std::size_t>(std::ranges::mismatch(text, other).in1 - text.begin());
  while (same > 0 && same < text.size() && is_continuation(text[same])) --same;
  return text.substr(same);
}

}  // namespace

GeneratedText::GeneratedText(const data::Tokenizer& tokenizer, std::span<const data::TokenId> prompt)
    : tokenizer_(tokenizer) {
  for (const data::TokenId id : prompt) append(id);
  prompt_ = ids_.size();
  begin_from(prompt_ - open_tokens());
}

void GeneratedText::append(data::TokenId id) {
  if (id < 0 || static_cast<std::size_t>(id) >= tokenizer_.size()) return;
  ids_.push_back(id);
  if (!tokenizer_.joins_bytes()) return;
  if (!tokenizer_.bytes(id).empty() || (run_ > 0 && !has_text(ids_.size() - 1))) {
    ++run_;
  } else {
    run_ = 0;
  }
}

std::string GeneratedText::decode(std::size_t begin, std::size_t end) const {
  return tokenizer_.decode(std::span(ids_).subspan(begin, end - begin));
}

bool GeneratedText::has_text(std::size_t index) const { return !decode(index, index + 1).empty(); }

std::string GeneratedText::text() const { return without_beginning(decode(0, ids_.size()), decode(0, prompt_)); }

std::string GeneratedText::take_more(bool is_whole) {
  const std::size_t end = is_whole ? ids_.size() : ids_.size() - open_tokens();
  if (end <= begin_) return "";
  const std::size_t taken = decode(context_, begin_).size();
  std::string more = decode(context_, end).substr(taken);
  if (begin_ < prompt_) more = without_beginning(more, decode(context_, prompt_).substr(taken));
  begin_from(end);
  return more;
}

void GeneratedText::begin_from(std::size_t index) {
  for (std::size_t i = index; i > begin_; --i) {
    if (!has_text(i - 1)) continue;
    context_ = i - 1;
    break;
  }
  begin_ = index;
}

std::size_t GeneratedText::open_tokens() const {
  if (tokenizer_.joins_bytes()) return run_;
  std::string bytes;
  for (std::size_t count = 1; count <= ids_.size() - begin_ && bytes.size() < longest_character; ++count) {
    const std::size_t index = ids_.size() - count;
    if (!has_text(index)) continue;  // the bytes on both sides of it may form a character
    const std::string before = tokenizer_.bytes(ids_[index]);
    if (before.empty()) return 0;
    bytes.insert(0, before);
    const auto first = std::find_if_not(bytes.rbegin(), bytes.rend(), is_continuation);
    if (first == bytes.rend()) continue;
    const auto length = static_cast<std::size_t>(first - bytes.rbegin()) + 1;
    return character_length(static_cast<unsigned char>(*first)) > length ? count : 0;
  }
  return 0;
}

}  // namespace mylos::tasks
