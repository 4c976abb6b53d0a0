#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizer/tokenizer.hpp"
#include "data/tokenizer/vocabulary.hpp"

namespace mylos::data {

/// The options of tokenizer_config.json, under the same names.
struct TokenizerOptions {
  bool do_lower_case = true;
  std::optional<bool> strip_accents;  // default: do_lower_case
  bool tokenize_chinese_chars = true;
};

/// Returns the checksum of a tokenizer with these options and the vocabulary whose tokens, each followed by a line
/// feed, have the CRC-32C `vocabulary`.
std::uint32_t wordpiece_checksum(std::uint32_t vocabulary, const TokenizerOptions& options);

/// BERT's tokenizer, with the same tokens and offsets as Hugging Face's BertTokenizerFast: finds special tokens in the
/// raw text, cleans up, separates Chinese characters, handles accents and case, splits into words, and applies greedy
/// WordPiece.
class WordPieceTokenizer final : public Tokenizer {
 public:
  explicit WordPieceTokenizer(Vocabulary vocabulary, TokenizerOptions options = {});

  TokenizerIdentity identity() const override { return identity_; }

  using Tokenizer::tokenize;
  /// Errors name the byte position.
  void tokenize(std::string_view text, Tokens& tokens) const override;
  std::optional<Tokens> plain_tokens(std::string_view text) const override;
  std::string token(TokenId id) const override;
  bool continues_word(TokenId id) const override;
  std::optional<TokenId> special(SpecialToken role) const override;

 private:
  class Run;

  /// Returns the special token at the start of `text`, or null.
  const std::pair<std::string_view, TokenId>* special_at(std::string_view text) const;

  Vocabulary vocabulary_;
  TokenizerIdentity identity_;
  bool lower_case_;
  bool strip_accents_;
  bool split_chinese_;
  TokenTrie::Node continuation_;  // the node for "##"
  std::vector<std::pair<std::string_view, TokenId>> specials_;
};

}  // namespace mylos::data
