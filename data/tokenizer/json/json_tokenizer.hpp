#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/file_reader.hpp"
#include "data/tokenizer/json/added_tokens.hpp"
#include "data/tokenizer/json/models.hpp"
#include "data/tokenizer/json/post_processors.hpp"
#include "data/tokenizer/json/stages.hpp"
#include "data/tokenizer/tokenizer.hpp"

namespace mylos::data {

/// The tokenizer in a tokenizer.json, with the ids and offsets of Hugging Face `tokenizers` 0.22. Added tokens are
/// found in a text, unlike special tokens in that of a tokenizer.model.
class JsonTokenizer final : public Tokenizer {
 public:
  /// Reads the file, and the tokenizer_config.json beside it if there is one: it has the names of special tokens, and
  /// changes what the file says as in transformers 4.57. Throws std::runtime_error of one line with the file and the
  /// field for what is damaged or not supported.
  static JsonTokenizer load(const FileReader& files, const std::filesystem::path& path);
  /// Reads the text of a tokenizer.json, whose name in errors is `file`.
  JsonTokenizer(std::string_view text, std::string_view file);

  TokenizerIdentity identity() const override { return identity_; }

  using Tokenizer::tokenize;
  void tokenize(std::string_view text, Tokens& tokens) const override;
  Tokens tokenize_untrimmed(std::string_view text) const override { return tokens_of(text, {}); }
  /// Returns the tokens with those that the post-processor puts around one text, whose offsets are empty.
  Tokens with_special(std::string_view text) const;
  std::string decode(std::span<const TokenId> ids) const override { return text_of(ids, true); }
  std::string decode_all(std::span<const TokenId> ids) const override { return text_of(ids, false); }
  std::string token(TokenId id) const override;
  bool continues_word(TokenId id) const override;
  std::string bytes(TokenId id) const override;
  bool joins_bytes() const override { return !writes_bytes_; }
  /// Returns that of the post-processor. Errors: std::runtime_error if it begins texts with several tokens.
  std::optional<TokenId> first_token(std::optional<TokenId> configured) const override;
  std::optional<TokenId> special(SpecialToken role) const override;
  /// Throws std::runtime_error too if the post-processor lays out pairs in another way.
  PairLayout pair_layout() const override;
  /// Returns how the post-processor lays out pairs; null if it does not say.
  const Template* pair_template() const { return processor_.pair ? &*processor_.pair : nullptr; }

  /// Returns the id of exactly `token`, or nullopt.
  std::optional<TokenId> find(std::string_view token) const;

 private:
  JsonTokenizer(const TokenizerJson& read, std::string_view text, const JsonLocation& location);

  std::string_view text_of(TokenId id) const;
  std::string text_of(std::span<const TokenId> ids, bool leaves_out_special) const;
  void read_roles(const Json& config, const JsonLocation& location);
  void read_added_around(const Json& config, const JsonLocation& location);
  Tokens tokens_of(std::string_view text, std::span<const OffsetTrim> trims) const;
  void append_tokens(const PiecedText& text, Tokens& tokens, std::vector<std::string_view>* texts) const;

  std::string file_;
  TokenTable table_;
  Normalizer normalizer_;
  AddedTokens added_;
  PreTokenizer pre_tokenizer_;
  TokenModel model_;
  PostProcessor processor_;
  Decoder decoder_;
  TokenizerIdentity identity_;
  bool writes_bytes_ = false;  // tokens are characters that stand for bytes
  std::string continuation_;   // begins tokens within a word; empty if others mark the start of a word
  std::array<std::optional<TokenId>, 6> roles_;
};

}  // namespace mylos::data
