#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/vocabulary.hpp"

namespace mylos::data {

/// Identifies a tokenizer.model.
struct SentencePieceIdentity {
  std::size_t pieces = 0;
  std::uint32_t checksum = 0;  ///< CRC-32C of the file
  bool operator==(const SentencePieceIdentity&) const = default;
};

/// The tokenizer in a tokenizer.model. Ids are those of the SentencePiece library. All functions are thread-safe.
class SentencePieceTokenizer {
 public:
  /// Reads a model file. Throws std::runtime_error of one line with the file if it is missing, truncated or not a
  /// SentencePiece model.
  static SentencePieceTokenizer load(const std::filesystem::path& path);

  SentencePieceTokenizer(SentencePieceTokenizer&&) noexcept;
  SentencePieceTokenizer& operator=(SentencePieceTokenizer&&) noexcept;
  ~SentencePieceTokenizer();

  /// Returns the ids of `text`, without BOS and EOS. Names of special tokens are ordinary text: "<s>" never becomes
  /// BOS. Throws std::runtime_error if `text` is not UTF-8.
  std::vector<TokenId> encode(std::string_view text) const;
  /// Returns the text of `ids`. BOS, EOS and other control tokens add no text. Throws std::runtime_error if an id is
  /// outside the model.
  std::string decode(std::span<const TokenId> ids) const;

  std::size_t size() const { return identity_.pieces; }
  /// Returns the model's name of a token: "▁the", "<s>", "<0x0A>". Errors as for decode.
  std::string piece(TokenId id) const;
  /// Returns the byte of a byte token ("<0x0A>"), and nullopt for other tokens. Errors as for decode.
  std::optional<unsigned char> byte(TokenId id) const;
  TokenId unknown() const;
  /// Returns nullopt if the model has no such token. config.json, not the model, determines which tokens training adds.
  std::optional<TokenId> begin_of_text() const;
  std::optional<TokenId> end_of_text() const;
  const SentencePieceIdentity& identity() const { return identity_; }

 private:
  struct Model;
  SentencePieceTokenizer(std::unique_ptr<Model> model, SentencePieceIdentity identity);
  void check_id(TokenId id) const;

  std::unique_ptr<Model> model_;
  SentencePieceIdentity identity_;
};

}  // namespace mylos::data
