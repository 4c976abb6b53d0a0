#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/file_reader.hpp"
#include "data/tokenizer/token_trie.hpp"
#include "data/tokenizer/tokenizer.hpp"

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

/// A BERT vocabulary. The id of a token is its line in vocab.txt, counted from 0. Immutable once constructed.
class Vocabulary {
 public:
  /// Reads vocab.txt: UTF-8, one token per line, LF or CRLF. As in transformers, a token that is blank or has white
  /// space around it has an id and never matches; empty lines at the end have none. Throws with the file and the line
  /// if the file is missing, empty or not UTF-8, on duplicate tokens, and if [PAD], [UNK], [CLS] or [SEP] is missing.
  static Vocabulary load(const FileReader& files, const std::filesystem::path& path);

  /// Uses tokens in the order of their ids. `name` is the file name in errors, which are those of load().
  Vocabulary(std::vector<std::string> tokens, std::string_view name);

  std::size_t size() const { return tokens_.size(); }
  const std::string& token(TokenId id) const;
  std::optional<TokenId> find(std::string_view token) const;

  TokenId padding() const { return padding_; }
  TokenId unknown() const { return unknown_; }
  TokenId classify() const { return classify_; }
  TokenId separator() const { return separator_; }
  const TokenTrie& trie() const { return trie_; }

 private:
  TokenId find_special(std::string_view token, std::string_view name) const;

  std::vector<std::string> tokens_;
  TokenTrie trie_;
  TokenId padding_;
  TokenId unknown_;
  TokenId classify_;
  TokenId separator_;
};

}  // namespace mylos::data
