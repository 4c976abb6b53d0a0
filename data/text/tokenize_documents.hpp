#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "data/text/documents.hpp"
#include "data/tokenizer/tokenizer.hpp"

namespace mylos::data {

/// Computes the ids of each document that is a text, on `threads` threads (0: as many as this process has processors).
/// Throws std::runtime_error with `path` and the line of the first document that cannot be tokenized, because there is
/// no tokenizer or it rejects the text.
void tokenize_documents(std::span<Document> documents, const std::filesystem::path& path, const Tokenizer* tokenizer,
                        std::size_t threads);

}  // namespace mylos::data
