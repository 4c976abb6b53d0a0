#include "data/tokenizer/json/charsmap.hpp"

#include <cstring>
#include <utility>
#include "data/tokenizer/bert_unicode.hpp"

namespace mylos::data {
namespace {

/// Returns the bytes that base64 gives; nullopt if it is none.
std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xFFU));
  }
  return bytes;
}

// A unit of a darts-clone double array.
bool has_leaf(std::uint32_t unit) { return ((unit >> 8U) & 1U) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFFU; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FFU; }
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10U) << ((unit & (1U << 9U)) >> 6U); }

/// A character of the new text. It takes the place of 1 - `added` characters: of several if others are removed after
/// it.
struct Change {
  char32_t c;
  int added;
};

/// Appends `text` in the place of `count` characters. As in `tokenizers`, the last ones are added if there are more,
/// and else the last takes the place of the rest; if there is nothing before, the rest is not taken, and what follows
/// has the origins of the characters before it.
void append_replacement(std::vector<Change>& changes, int count, std::string_view text) {
  int written = 0;
  for (std::size_t position = 0; position < text.size(); ++written) {
    changes.push_back({decode_code_point(text, position), written < count ? 0 : 1});
  }
  if (written < count && !changes.empty()) changes.back().added -= count - written;
}

/// Returns the length in bytes of the first grapheme cluster of a text that is not empty.
std::size_t first_grapheme(std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c < 0x7F; };
  if (text.size() > 1 && is_plain(text[0]) && is_plain(text[1])) return 1;
  std::size_t end = 0;
  int state = 0;
  for (char32_t before = decode_code_point(text, end); end < text.size();) {
    std::size_t next = end;
    const char32_t c = decode_code_point(text, next);
    if (begins_grapheme(before, c, state)) break;
    before = c;
    end = next;
  }
  return end;
}

}  // namespace

Charsmap::Charsmap(std::string_view base64, const JsonLocation& location) {
  const std::optional<std::string> bytes = decode_base64(base64);
  if (!bytes) location.fail("not base64");
  std::uint32_t size = 0;
  if (bytes->size() >= sizeof size) std::memcpy(&size, bytes->data(), sizeof size);
  if (size < sizeof(std::uint32_t) || size % sizeof(std::uint32_t) != 0 || size + sizeof size > bytes->size()) {
    location.fail("the charsmap is cut short");
  }
  units_.resize(size / sizeof(std::uint32_t));
  std::memcpy(units_.data(), bytes->data() + sizeof size, size);
  replacements_ = bytes->substr(sizeof size + size);
  if (first_invalid_utf8(replacements_)) location.fail("a replacement is not UTF-8");
}

std::optional<std::string_view> Charsmap::replacement(std::string_view part) const {
  std::uint32_t node = offset_of(units_.front());
  for (const char c : part) {
    const auto label = static_cast<unsigned char>(c);
    node ^= label;
    if (label == 0 || node >= units_.size() || label_of(units_[node]) != label) return std::nullopt;
    const bool is_end = has_leaf(units_[node]);
    node ^= offset_of(units_[node]);
    if (node >= units_.size()) return std::nullopt;
    if (!is_end) continue;
    const std::size_t begin = value_of(units_[node]);
    if (begin >= replacements_.size() || is_continuation(replacements_[begin])) return std::nullopt;
    const std::string_view rest = std::string_view(replacements_).substr(begin);
    return rest.substr(0, rest.find('\0'));
  }
  return std::nullopt;
}

void Charsmap::normalize(AlignedText& text) const {
  constexpr std::size_t longest_whole = 5;  // bytes of a cluster that is looked up as a whole
  std::vector<Change> changes;
  changes.reserve(text.text.size());
  for (std::string_view rest = text.text; !rest.empty();) {
    std::string_view cluster = rest.substr(0, first_grapheme(rest));
    rest.remove_prefix(cluster.size());
    ensure_fits(changes.size(), text.origins);
    const auto whole = cluster.size() <= longest_whole ? replacement(cluster) : std::nullopt;
    if (whole) {
      append_replacement(changes, static_cast<int>(count_code_points(cluster)), *whole);
      continue;
    }
    while (!cluster.empty()) {
      std::size_t length = 0;
      const char32_t c = decode_code_point(cluster, length);
      if (const auto single = replacement(cluster.substr(0, length))) {
        append_replacement(changes, 1, *single);
      } else {
        changes.push_back({c, 0});
      }
      cluster.remove_prefix(length);
    }
  }
  AlignedText changed;
  Rewriter rewriter(text.text, text.origins, changed);
  for (const Change& change : changes) {
    change.added > 0 ? rewriter.insert(change.c) : rewriter.replace(change.c);
    for (int i = change.added; i < 0; ++i) rewriter.skip();
  }
  text = std::move(changed);
}

}  // namespace mylos::data
