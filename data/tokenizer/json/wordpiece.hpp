#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/tokenizer/json/stages.hpp"
#include "data/tokenizer/tokenizer.hpp"
#include "data/tokenizer/vocabulary.hpp"

namespace mylos::data {

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
  Normalizer normalizer_;
  TokenTrie::Node continuation_;  // the node for "##"
  std::vector<std::pair<std::string_view, TokenId>> specials_;
};

}  // namespace mylos::data
