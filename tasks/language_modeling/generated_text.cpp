#include "tasks/language_modeling/generated_text.hpp"

#include "core/base/text/unicode.hpp"

#include <algorithm>
#include <string_view>

namespace mylos::tasks {
namespace {

constexpr std::size_t longest_character = 4;                  // bytes of UTF-8
constexpr std::string_view not_a_character = "\xEF\xBF\xBD";  // U+FFFD

/// Returns the length in bytes of the character that begins with `byte`; 1 if no character begins with it.
std::size_t character_length(unsigned char byte) {
  if (byte >= 0xF8U) return 1;
  if (byte >= 0xF0U) return 4;
  if (byte >= 0xE0U) return 3;
  return byte >= 0xC0U ? 2 : 1;
}

/// Returns a token that has a text in every context and does not merge with byte tokens; empty if there is none.
std::vector<data::TokenId> visible_token(const data::Tokenizer& tokenizer) {
  for (std::size_t i = 0; i < tokenizer.size(); ++i) {
    const auto id = static_cast<data::TokenId>(i);
    const std::string text = tokenizer.decode({&id, 1});
    if (tokenizer.bytes(id).size() != 1 && !text.empty() && text.find(not_a_character) == std::string::npos)
      return {id};
  }
  return {};
}

}  // namespace

GeneratedText::GeneratedText(const data::Tokenizer& tokenizer, std::span<const data::TokenId> prompt)
    : tokenizer_(tokenizer), ids_(prompt.begin(), prompt.end()), prompt_(tokenizer.decode(ids_)) {
  if (!prompt_.empty()) begin_from(ids_.size());
}

void GeneratedText::append(data::TokenId id) {
  if (id >= 0 && static_cast<std::size_t>(id) < tokenizer_.size()) ids_.push_back(id);
}

std::string GeneratedText::text() const {
  const std::string all = tokenizer_.decode(ids_);
  std::size_t same = 0;
  while (same < all.size() && same < prompt_.size() && all[same] == prompt_[same]) ++same;
  while (same > 0 && same < all.size() && is_continuation(all[same])) --same;
  return all.substr(same);
}

std::string GeneratedText::take_more(bool is_whole) {
  const std::size_t end = is_whole ? ids_.size() : ids_.size() - open_bytes();
  std::vector<data::TokenId> taken = context_;
  taken.insert(taken.end(), ids_.begin() + static_cast<std::ptrdiff_t>(begin_),
               ids_.begin() + static_cast<std::ptrdiff_t>(end));
  std::string more = tokenizer_.decode(taken).substr(context_text_.size());
  // Until there is text, a token may lose its leading space and depends on all tokens before it.
  if (!more.empty() || !context_text_.empty()) begin_from(end);
  return more;
}

void GeneratedText::begin_from(std::size_t index) {
  begin_ = index;
  if (!context_text_.empty()) return;
  context_ = visible_token(tokenizer_);
  context_text_ = tokenizer_.decode(context_);
}

std::size_t GeneratedText::open_bytes() const {
  const std::size_t most = std::min(ids_.size() - begin_, longest_character - 1);
  std::string bytes;
  for (std::size_t count = 1; count <= most; ++count) {
    const std::string before = tokenizer_.bytes(ids_[ids_.size() - count]);
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
