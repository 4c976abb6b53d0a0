#include "data/tokenizer/bert_normalizer.hpp"

#include <algorithm>
#include <cstddef>

#include "data/tokenizer/bert_unicode.hpp"

namespace mylos::data {
namespace {

/// One code point of a decomposition. `tokenizers` aligns code points after sorting the marks: in sorted order, a code
/// point that begins a decomposition takes the next original, and any other takes that of its predecessor.
struct Decomposed {
  char32_t code_point;
  int combining_class;
  bool begins;
};

void append_decomposition(char32_t c, std::vector<Decomposed>& out) {
  char32_t parts[max_decomposition];
  const std::size_t count = decompose(c, parts);
  for (std::size_t i = 0; i < count; ++i) out.push_back({parts[i], combining_class(parts[i]), i == 0});
}

/// Applies canonical ordering: stably sorts each run of code points with nonzero combining class by that class.
void order_marks(std::vector<Decomposed>& text) {
  const auto is_mark = [](const Decomposed& c) { return c.combining_class != 0; };
  for (auto first = std::find_if(text.begin(), text.end(), is_mark); first != text.end();) {
    const auto last = std::find_if_not(first, text.end(), is_mark);
    std::stable_sort(first, last,
                     [](const Decomposed& a, const Decomposed& b) { return a.combining_class < b.combining_class; });
    first = std::find_if(last, text.end(), is_mark);
  }
}

}  // namespace

const std::vector<NormalizedChar>& BertNormalizer::normalize(std::string_view text, unsigned first) {
  clean(text, first);
  if (options_.strip_accents) decompose_and_strip();
  if (options_.lower_case) lower();
  return chars_;
}

/// Deletes controls, replaces all white space by spaces, and puts spaces around Chinese characters.
void BertNormalizer::clean(std::string_view text, unsigned first) {
  chars_.clear();
  for (std::size_t position = 0; position < text.size(); ++first) {
    const char32_t c = decode_code_point(text, position);
    const CodePointRange origin{first, first + 1};
    if (is_removed_by_bert(c)) continue;
    if (is_bert_whitespace(c)) {
      chars_.push_back({' ', origin});
    } else if (options_.split_chinese && is_chinese(c)) {
      chars_.insert(chars_.end(), {{' ', origin}, {c, origin}, {' ', origin}});
    } else {
      chars_.push_back({c, origin});
    }
  }
}

void BertNormalizer::decompose_and_strip() {
  std::vector<Decomposed> decomposed;
  decomposed.reserve(chars_.size() * 2);
  for (const NormalizedChar& c : chars_) append_decomposition(c.code_point, decomposed);
  order_marks(decomposed);
  next_.clear();
  std::size_t consumed = 0;
  for (const Decomposed& c : decomposed) {
    if (c.begins) ++consumed;
    const CodePointRange origin = consumed == 0 ? CodePointRange{} : chars_[consumed - 1].origin;
    if (!is_nonspacing_mark(c.code_point)) next_.push_back({c.code_point, origin});
  }
  chars_.swap(next_);
}

void BertNormalizer::lower() {
  next_.clear();
  for (const NormalizedChar& c : chars_) {
    char32_t parts[2];
    const std::size_t count = to_lower(c.code_point, parts);
    for (std::size_t i = 0; i < count; ++i) next_.push_back({parts[i], c.origin});
  }
  chars_.swap(next_);
}

}  // namespace mylos::data
