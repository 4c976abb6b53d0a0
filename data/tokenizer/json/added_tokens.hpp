#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/files/json.hpp"
#include "data/tokenizer/json/aligned_text.hpp"
#include "data/tokenizer/json/stages.hpp"
#include "data/tokenizer/json/token_table.hpp"
#include "data/tokenizer/token_trie.hpp"

namespace mylos::data {

/// The added tokens of a tokenizer.json, which are found in a text before a model reads the rest.
class AddedTokens {
 public:
  /// Reads `added_tokens`. Throws at `location` if a field is not supported, or a token is there twice or has another
  /// id than `tokenizers` would give it: that in `vocab`, or the first after it that is free.
  AddedTokens(const Json& json, const JsonLocation& location, const TokenTable& table, const Normalizer& normalizer);

  /// Returns the number of ids of the model and these tokens.
  std::size_t size() const { return size_; }
  /// Returns the id of exactly `token`, or -1.
  TokenId find(std::string_view token) const;
  /// Returns the token with this id, or null.
  const std::string* token(TokenId id) const;
  /// Returns whether decoding leaves the token out.
  bool is_special(TokenId id) const;

  /// Returns the text in pieces: the added tokens, and the rest normalized.
  PiecedText split(std::string_view text, const Normalizer& normalizer) const;

 private:
  struct Token {
    std::string content;
    std::string sought = {};  // in a text
    TokenId id = -1;
    bool is_special = false;
    bool is_single_word = false;
    bool strips_left = false;
    bool strips_right = false;
    bool is_normalized = false;
  };
  /// The tokens that are found in the text as it is, or normalized.
  struct Finder {
    explicit Finder(const std::vector<std::string>& texts);

    TokenTrie trie;  // of the texts; its ids are indices of tokens
    std::array<bool, 256> begins{};
  };

  static Token read(const Json& json, const JsonLocation& location);
  std::vector<std::string> texts(bool normalized) const;
  void cut(std::string_view text, std::size_t offset, const Finder& finder, std::vector<Piece>& out) const;

  std::size_t size_ = 0;
  std::vector<Token> tokens_;  // special ones first
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<int> by_id_;  // indices of tokens; -1: none
  std::optional<Finder> plain_;
  std::optional<Finder> normalized_;
};

}  // namespace mylos::data
