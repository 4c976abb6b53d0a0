#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/files/json.hpp"
#include "data/tokenizer/json/model_lists.hpp"
#include "data/tokenizer/json/token_table.hpp"
#include "data/tokenizer/token_trie.hpp"

/// The models of a tokenizer.json, which turn a word into tokens. Immutable, so threads can use the same object.
namespace mylos::data {

/// A token of a word: bytes [begin, end).
struct WordToken {
  TokenId id = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Byte pair encoding.
class BpeModel {
 public:
  /// Reads `model`. Throws at `location` if a field is not supported or a merge has an unknown part.
  BpeModel(const Json& json, const JsonLocation& location, const ModelLists& lists, const TokenTable& table);

  /// Appends the tokens of a word.
  void tokenize(std::string_view word, const TokenTable& table, std::vector<WordToken>& tokens) const;
  TokenId unknown() const { return unknown_; }

 private:
  /// A pair of adjacent tokens and the token that replaces it. Merges with a lower rank come first.
  struct Merge {
    std::uint64_t pair = free_pair;
    std::uint32_t rank = 0;
    TokenId merged = -1;
  };
  static constexpr std::uint64_t free_pair = ~std::uint64_t{0};

  void add_merges(const JsonLocation& location, const ModelLists& lists, const TokenTable& table);
  void find_word_starts(const ModelLists& lists, const TokenTable& table);
  std::size_t slot_of(std::uint64_t pair) const;
  const Merge* find_merge(TokenId left, TokenId right) const;
  TokenId symbol(std::string_view character, bool is_first, bool is_last, const TokenTable& table) const;
  void merge_symbols(std::vector<WordToken>& tokens, std::size_t first) const;
  void merge_few(WordToken* symbols, std::size_t& count) const;
  void merge_many(WordToken* symbols, std::size_t& count) const;

  std::vector<Merge> merges_;  // open addressing
  std::vector<bool> starts_;   // by token: whether no merge joins it, as a first symbol, to another symbol before it
  std::array<TokenId, 0x400> symbols_{};  // of the first characters of Unicode
  std::array<TokenId, 256> bytes_{};
  std::string prefix_;
  std::string suffix_;
  TokenId unknown_ = -1;
  bool fuses_unknown_ = false;
  bool has_bytes_ = false;
  bool ignores_merges_ = false;
};

/// The longest token first, from the left.
class WordPieceModel {
 public:
  /// Reads `model`. Throws at `location` if a field is not supported or there is no unknown token.
  WordPieceModel(const Json& json, const JsonLocation& location, const TokenTable& table);

  void tokenize(std::string_view word, const TokenTable& table, std::vector<WordToken>& tokens) const;
  TokenId unknown() const { return unknown_; }

 private:
  TokenTrie trie_;
  TokenTrie::Node continuation_ = TokenTrie::root;
  TokenId unknown_ = -1;
  std::size_t longest_word_ = 0;  // in characters
};

/// The tokens with the greatest sum of scores.
class UnigramModel {
 public:
  /// Reads `model`. Throws at `location` if a field is not supported or there is no unknown token.
  UnigramModel(const Json& json, const JsonLocation& location, const ModelLists& lists, const TokenTable& table);

  void tokenize(std::string_view word, const TokenTable& table, std::vector<WordToken>& tokens) const;
  TokenId unknown() const { return unknown_; }

 private:
  void append_unknown(std::string_view word, const WordToken& part, const TokenTable& table,
                      std::vector<WordToken>& tokens) const;

  TokenTrie trie_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
  TokenId unknown_ = -1;
  std::string unknown_place_;  // where no unknown token is given
  bool has_bytes_ = false;
};

using TokenModel = std::variant<BpeModel, WordPieceModel, UnigramModel>;

/// Returns the tokens of `vocab` by id. Throws at `location` if an id is no whole number, there twice, or missing, or a
/// token is there twice.
TokenTable read_tokens(const ModelLists& lists, const JsonLocation& location);

/// Returns a trie of the tokens that are not empty.
TokenTrie make_trie(const TokenTable& table);

/// Reads `model`, whose tokens are in `table`. Throws at `location` if its type is not supported.
TokenModel read_model(const Json& json, const JsonLocation& location, const ModelLists& lists, const TokenTable& table);

}  // namespace mylos::data
