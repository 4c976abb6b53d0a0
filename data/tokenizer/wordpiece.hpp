#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/unicode.hpp"
#include "data/tokenizer/vocabulary.hpp"

namespace mylos::data {

/// The options of tokenizer_config.json, under the same names.
struct TokenizerOptions {
  bool do_lower_case = true;
  std::optional<bool> strip_accents;  // default: do_lower_case
  bool tokenize_chinese_chars = true;
};

/// The tokens of one text. ids[i] covers the code points offsets[i] of the original text.
struct Tokens {
  std::vector<TokenId> ids;
  std::vector<CodePointRange> offsets;
};

/// BERT's tokenizer, with the same tokens and offsets as Hugging Face's BertTokenizerFast: finds special tokens in the
/// raw text, cleans up, separates Chinese characters, handles accents and case, splits into words, and applies greedy
/// WordPiece. Immutable, so threads can use the same object.
class WordPieceTokenizer {
 public:
  explicit WordPieceTokenizer(Vocabulary vocabulary, TokenizerOptions options = {});

  const Vocabulary& vocabulary() const { return vocabulary_; }

  /// Tokenizes `text`, without adding [CLS] and [SEP]. Throws with the byte position if `text` is not UTF-8.
  Tokens tokenize(std::string_view text) const;

  /// Does the same, and appends to `tokens`.
  void tokenize(std::string_view text, Tokens& tokens) const;

 private:
  class Run;

  /// Returns the special token at the start of `text`, or null.
  const std::pair<std::string_view, TokenId>* special_at(std::string_view text) const;

  Vocabulary vocabulary_;
  bool lower_case_;
  bool strip_accents_;
  bool split_chinese_;
  TokenTrie::Node continuation_;  // the node for "##"
  std::vector<std::pair<std::string_view, TokenId>> specials_;
};

}  // namespace mylos::data
