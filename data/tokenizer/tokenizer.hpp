#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/text/unicode.hpp"

/// The interface of all tokenizers. A model's family knows which one its directories have.
namespace mylos::data {

using TokenId = std::int32_t;

/// The tokens of one text. ids[i] covers the code points offsets[i] of the original text.
struct Tokens {
  std::vector<TokenId> ids;
  std::vector<CodePointRange> offsets;
};

/// What prepared files record of a tokenizer. Tokenizers with different identities tokenize texts differently.
struct TokenizerIdentity {
  std::size_t size = 0;        ///< number of tokens
  std::uint32_t checksum = 0;  ///< CRC-32C of the tokens and settings
  bool operator==(const TokenizerIdentity&) const = default;
};

/// Returns "a tokenizer of 30522 tokens (CRC32C 1a2b3c4d)".
std::string identity_text(const TokenizerIdentity& identity);

/// The roles of special tokens. `first` begins what a model reads, `separator` ends each text of a pair, `end` ends a
/// document.
enum class SpecialToken { first, separator, padding, mask, unknown, end };

/// How a model reads two texts: `first`, text, `separators` times `separator`, text, `separator`.
struct PairLayout {
  TokenId first = 0;
  TokenId separator = 0;
  std::size_t separators = 1;    ///< between the texts
  std::int32_t second_type = 1;  ///< token type of the second text and the separator after it; 0 before it

  /// Returns the position of the first token of the second text, if the first has so many tokens.
  std::size_t second_position(std::size_t tokens) const { return 1 + tokens + separators; }
  /// Returns the number of special tokens.
  std::size_t special_count() const { return separators + 2; }
};
inline auto members(PairLayout& layout) {
  auto& [first, separator, separators, second_type] = layout;  // does not compile if one is forgotten
  return std::tie(first, separator, separators, second_type);
}

/// Turns texts into ids, and ids into texts. Immutable, so threads can use the same object.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual TokenizerIdentity identity() const = 0;
  std::size_t size() const { return identity().size; }

  /// Appends the tokens of `text`, without special tokens around it. Errors: std::runtime_error if `text` is not UTF-8.
  virtual void tokenize(std::string_view text, Tokens& tokens) const = 0;
  Tokens tokenize(std::string_view text) const;
  /// Returns the tokens with offsets that also cover white space which `tokenize` leaves out of them (trim_offsets).
  virtual Tokens tokenize_untrimmed(std::string_view text) const { return tokenize(text); }
  /// Returns the ids alone, which may be faster.
  virtual std::vector<TokenId> encode(std::string_view text) const { return tokenize(text).ids; }

  /// Returns the text of `ids`; special tokens add none. Errors: std::runtime_error if an id is out of range;
  /// UsageError if ids do not determine the text.
  virtual std::string decode(std::span<const TokenId> ids) const;
  /// Does the same, with the text of special tokens if they have one.
  virtual std::string decode_all(std::span<const TokenId> ids) const { return decode(ids); }
  /// Returns the name of a token: "##ing", "▁the", "<0x0A>". Errors: std::runtime_error if the id is out of range.
  virtual std::string token(TokenId id) const = 0;
  /// Returns whether the token continues the word of the token before it.
  virtual bool continues_word(TokenId id) const = 0;
  /// Returns the bytes of a token that may stand for a part of a character, and none for other tokens. A token of one
  /// byte may need those beside it to have a text.
  virtual std::string bytes(TokenId) const { return ""; }
  /// Returns whether adjacent tokens of a byte each are decoded as a whole: not even their characters are left if one
  /// of the bytes belongs to none.
  virtual bool joins_bytes() const { return false; }

  /// Returns the token that begins each text: `configured`, that of config.json, unless the tokenizer's own files say
  /// another or that there is none.
  virtual std::optional<TokenId> first_token(std::optional<TokenId> configured) const { return configured; }
  /// Returns nullopt if there is no token with this role.
  virtual std::optional<TokenId> special(SpecialToken role) const = 0;
  /// Returns how pairs of texts are laid out. Errors: std::runtime_error if there is no first token or no separator.
  virtual PairLayout pair_layout() const;
};

/// Returns the token with a role that the use needs. Errors: std::runtime_error if there is none.
TokenId require_special(const Tokenizer& tokenizer, SpecialToken role);

}  // namespace mylos::data
