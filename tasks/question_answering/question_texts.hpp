#pragma once

#include "data/tokenizer/wordpiece.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace mylos::tasks {

/// Returns the texts of a question file that are tokenized when it is cut into windows: each context once, and each
/// question. Errors: std::runtime_error naming the file.
std::vector<std::string> tokenized_texts(const std::filesystem::path& file);

/// The components of a WordPiece tokenizer.
struct WordPieceSource {
  std::filesystem::path vocabulary;  ///< vocab.txt
  data::TokenizerOptions options;
};

/// Returns the tokenizer of the model in `directory`. Errors: std::runtime_error naming the file, also if the model has
/// another kind of tokenizer.
WordPieceSource wordpiece_source(const std::filesystem::path& directory);

}  // namespace mylos::tasks
