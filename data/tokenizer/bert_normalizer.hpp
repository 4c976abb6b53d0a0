#pragma once

#include <string_view>
#include <vector>

#include "core/base/unicode.hpp"

namespace mylos::data {

/// One code point of normalised text, and the code points of the original that it stands for.
struct NormalizedChar {
  char32_t code_point;
  CodePointRange origin;
};

/// The BertNormalizer of Hugging Face `tokenizers`, with its alignment of every code point to the original text.
/// Holds scratch space: one per thread.
class BertNormalizer {
 public:
  struct Options {
    bool lower_case;
    bool strip_accents;
    bool split_chinese;
  };

  explicit BertNormalizer(Options options) : options_(options) {}

  /// `text`, well-formed UTF-8, whose first code point is number `first` of the original. The result is valid until
  /// the next call. A text may be cut before or after any ASCII code point without changing the result.
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
