#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "data/text/documents.hpp"
#include "data/tokenizer/tokenizer.hpp"

namespace mylos::data {

/// Tokens, and for each whether the loss counts it, as 1 or 0.
struct SupervisedTokens {
  std::vector<TokenId> ids;
  std::vector<std::uint8_t> supervised;
};

/// Returns the tokens of `text`. The loss counts a token that holds a character of one of `parts`.
SupervisedTokens supervised_tokens(const Tokenizer& tokenizer, std::string_view text,
                                   std::span<const CodePointRange> parts);

/// Computes the ids of each document that is a text, and which of them the loss counts: those that hold a character
/// that is supervised. Uses `threads` threads (0: as many as this process has processors). Throws std::runtime_error
/// with `path` and the line of the first document that cannot be tokenized, because there is no tokenizer or it rejects
/// the text.
void tokenize_documents(std::span<Document> documents, const std::filesystem::path& path, const Tokenizer* tokenizer,
                        std::size_t threads);

}  // namespace mylos::data
