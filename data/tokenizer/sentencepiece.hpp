#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/file_reader.hpp"
#include "data/tokenizer/tokenizer.hpp"

namespace mylos::data {

/// The tokenizer in a tokenizer.model, whose checksum is that of the file. Ids are those of the SentencePiece library.
/// Names of special tokens are ordinary text: "<s>" never becomes BOS.
class SentencePieceTokenizer final : public Tokenizer {
 public:
  /// Reads a model file. Throws std::runtime_error of one line with the file if it is missing, truncated or not a
  /// SentencePiece model.
  static SentencePieceTokenizer load(const FileReader& files, const std::filesystem::path& path);

  SentencePieceTokenizer(SentencePieceTokenizer&&) noexcept;
  SentencePieceTokenizer& operator=(SentencePieceTokenizer&&) noexcept;
  ~SentencePieceTokenizer() override;

  TokenizerIdentity identity() const override { return identity_; }

  using Tokenizer::tokenize;
  void tokenize(std::string_view text, Tokens& tokens) const override;
  std::vector<TokenId> encode(std::string_view text) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  std::string token(TokenId id) const override;
  bool continues_word(TokenId id) const override;
  std::string bytes(TokenId id) const override;
  /// config.json, not the model, determines which tokens training adds.
  std::optional<TokenId> special(SpecialToken role) const override;

 private:
  struct Model;
  SentencePieceTokenizer(std::unique_ptr<Model> model, TokenizerIdentity identity);
  void check_id(TokenId id) const;

  std::unique_ptr<Model> model_;
  TokenizerIdentity identity_;
};

}  // namespace mylos::data
