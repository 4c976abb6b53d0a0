#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "data/text/documents.hpp"
#include "data/tokenizer/tokenizer.hpp"

namespace mylos::data {

/// Returns for each token whether it holds a character of one of `parts`, as 1 or 0.
std::vector<std::uint8_t> tokens_in(std::span<const CodePointRange> parts, std::span<const CodePointRange> tokens);

/// Computes the ids of each document that is a text, and which of them the loss counts: those that hold a character
/// that is supervised. Uses `threads` threads (0: as many as this process has processors). Throws std::runtime_error
/// with `path` and the line of the first document that cannot be tokenized, because there is no tokenizer or it rejects
/// the text.
void tokenize_documents(std::span<Document> documents, const std::filesystem::path& path, const Tokenizer* tokenizer,
                        std::size_t threads);

}  // namespace mylos::data
