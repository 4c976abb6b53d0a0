#include "data/squad/squad_text.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "core/base/text/python_text.hpp"
#include "core/base/text/unicode.hpp"

namespace mylos::data {
namespace {

/// True for the characters of Python's string.punctuation.
bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool is_article(std::u32string_view word) { return word == U"a" || word == U"an" || word == U"the"; }

/// Replaces \b(a|an|the)\b, i.e. every run of word characters that is an article, by a space.
std::u32string remove_articles(std::u32string_view text) {
  std::u32string kept;
  kept.reserve(text.size());
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_python_word(text[end])) ++end;
    const std::u32string_view word = text.substr(begin, end - begin);
    is_article(word) ? kept.push_back(' ') : void(kept.append(word));
    if (end < text.size()) kept.push_back(text[end++]);
    begin = end;
  }
  return kept;
}

}  // namespace

std::string normalize_answer(std::string_view text) {
  std::u32string lowered = python_lower(decode_utf8(text));
  std::erase_if(lowered, is_ascii_punctuation);
  std::string normalized;
  bool is_between_words = false;
  for (const char32_t c : remove_articles(lowered)) {
    if (is_python_space(c)) {
      is_between_words = true;
      continue;
    }
    if (is_between_words && !normalized.empty()) normalized.push_back(' ');
    is_between_words = false;
    append_utf8(normalized, c);
  }
  return normalized;
}

std::vector<std::string_view> normalized_words(std::string_view normalized) {
  std::vector<std::string_view> words;
  while (!normalized.empty()) {
    const std::size_t end = std::min(normalized.find(' '), normalized.size());
    words.push_back(normalized.substr(0, end));
    normalized.remove_prefix(std::min(end + 1, normalized.size()));
  }
  return words;
}

double word_f1(const std::vector<std::string_view>& prediction, const std::vector<std::string_view>& gold) {
  std::unordered_map<std::string_view, std::size_t> left;
  for (const std::string_view word : gold) ++left[word];
  std::size_t same = 0;
  for (const std::string_view word : prediction) {
    const auto found = left.find(word);
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++same;
  }
  if (same == 0) return 0;
  // Same order of operations as in the scripts: the last digit depends on it.
  const double precision = 1.0 * static_cast<double>(same) / static_cast<double>(prediction.size());
  const double recall = 1.0 * static_cast<double>(same) / static_cast<double>(gold.size());
  return (2 * precision * recall) / (precision + recall);
}

}  // namespace mylos::data
