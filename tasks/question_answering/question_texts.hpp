#pragma once

#include "data/tokenizer/wordpiece.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace mylos::tasks {

/// The texts of a file of questions that cutting them into windows tokenizes: each context once, and each question.
/// Errors: std::runtime_error naming the file.
std::vector<std::string> tokenized_texts(const std::filesystem::path& file);

/// What a WordPiece tokenizer is made of.
struct WordPieceSource {
  std::filesystem::path vocabulary;  ///< vocab.txt
  data::TokenizerOptions options;
};

/// That of the model in `directory`. Errors: std::runtime_error naming the file, also where the model has another one.
WordPieceSource wordpiece_source(const std::filesystem::path& directory);

}  // namespace mylos::tasks
