#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/unicode.hpp"
#include "data/tokenizer/vocabulary.hpp"

namespace mylos::data {

/// The switches of tokenizer_config.json, by its names.
struct TokenizerOptions {
  bool do_lower_case = true;
  std::optional<bool> strip_accents;  // do_lower_case where it is not set
  bool tokenize_chinese_chars = true;
};

/// Tokens of one text: ids[i] stands for the code points offsets[i] of the original text.
struct Tokens {
  std::vector<TokenId> ids;
  std::vector<CodePointRange> offsets;
};

/// BERT's tokenizer, token for token and offset for offset that of Hugging Face's BertTokenizerFast: special tokens
/// found in the raw text, then clean-up, Chinese characters, accents and case, then words, then greedy WordPiece.
/// Immutable: threads may share one.
class WordPieceTokenizer {
 public:
  explicit WordPieceTokenizer(Vocabulary vocabulary, TokenizerOptions options = {});

  const Vocabulary& vocabulary() const { return vocabulary_; }

  /// The tokens of `text`, without [CLS] and [SEP] around them. Throws where `text` is not UTF-8, with the byte.
  Tokens tokenize(std::string_view text) const;

  /// The same, appended to `tokens`.
  void tokenize(std::string_view text, Tokens& tokens) const;

 private:
  class Run;

  /// The special token that `text` begins with, or null.
  const std::pair<std::string_view, TokenId>* special_at(std::string_view text) const;

  Vocabulary vocabulary_;
  bool lower_case_;
  bool strip_accents_;
  bool split_chinese_;
  TokenTrie::Node continuation_;  // where "##" leads
  std::vector<std::pair<std::string_view, TokenId>> specials_;
};

}  // namespace mylos::data
