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

/// What tells one tokenizer.model from another.
struct SentencePieceIdentity {
  std::size_t pieces = 0;
  std::uint32_t checksum = 0;  ///< CRC-32C of the file
  bool operator==(const SentencePieceIdentity&) const = default;
};

/// A tokenizer.model. Ids are those of the SentencePiece library. All functions may be called from several threads at
/// once.
class SentencePieceTokenizer {
 public:
  /// Reads a model file. Throws std::runtime_error of one line naming the file where it is missing, cut short or not a
  /// SentencePiece model.
  static SentencePieceTokenizer load(const std::filesystem::path& path);

  SentencePieceTokenizer(SentencePieceTokenizer&&) noexcept;
  SentencePieceTokenizer& operator=(SentencePieceTokenizer&&) noexcept;
  ~SentencePieceTokenizer();

  /// The ids of `text`, without BOS and EOS. The names of special tokens are ordinary text here: "<s>" never becomes
  /// BOS. Throws std::runtime_error where `text` is not UTF-8.
  std::vector<TokenId> encode(std::string_view text) const;
  /// The text of `ids`; BOS, EOS and other control tokens give nothing. Throws std::runtime_error where an id is
  /// outside the model.
  std::string decode(std::span<const TokenId> ids) const;

  std::size_t size() const { return identity_.pieces; }
  /// How the model names a token: "▁the", "<s>", "<0x0A>". Errors as decode.
  std::string piece(TokenId id) const;
  /// The byte that a token stands for ("<0x0A>"); empty for other tokens. Errors as decode.
  std::optional<unsigned char> byte(TokenId id) const;
  TokenId unknown() const;
  /// Empty where the model has no such token. config.json, not the model, decides what training adds.
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
