#pragma once

#include <string_view>
#include <vector>

#include "core/base/text/unicode.hpp"

namespace mylos::data {

/// One code point of normalised text, and the range of original code points that it comes from.
struct NormalizedChar {
  char32_t code_point;
  CodePointRange origin;
};

/// The BertNormalizer of Hugging Face `tokenizers`, with the alignment of every code point to the original text.
/// Contains scratch space, so each thread needs its own.
class BertNormalizer {
 public:
  struct Options {
    bool lower_case;
    bool strip_accents;
    bool split_chinese;
  };

  explicit BertNormalizer(Options options) : options_(options) {}

  /// Normalises `text`, which is well-formed UTF-8 and starts at code point number `first` of the original. The result
  /// is valid until the next call. Splitting a text before or after any ASCII code point does not change the result.
  const std::vector<NormalizedChar>& normalize(std::string_view text, unsigned first);

 private:
  void clean(std::string_view text, unsigned first);
  void decompose_and_strip();
  void lower();

  Options options_;
  std::vector<NormalizedChar> chars_;
  std::vector<NormalizedChar> next_;
};

}  // namespace mylos::data
