#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "data/huggingface/pretrained.hpp"
#include "data/tokenizer/wordpiece.hpp"

/// WordPiece's files in a model directory: vocab.txt, tokenizer_config.json and tokenizer.json. Errors are
/// std::runtime_error naming the file and the key.
namespace mylos::data {

/// What a written model needs to tokenize as the one it came from. Held in memory: the source may be replaced
/// meanwhile.
struct WordPieceFiles {
  std::string vocabulary;      ///< the bytes of vocab.txt
  std::string tokenizer_json;  ///< the bytes of tokenizer.json; empty where there was none
  TokenizerOptions options;
};

/// The switches in tokenizer_config.json of `directory`; the defaults where it has no such file.
TokenizerOptions read_tokenizer_options(const std::filesystem::path& directory);

/// The path of vocab.txt in `directory`. Throws where there is none.
std::filesystem::path vocabulary_path(const std::filesystem::path& directory);

WordPieceFiles read_wordpiece_files(const std::filesystem::path& directory);

/// The files to write into a model directory, those that transformers asks for included. `longest_input` is the number
/// of tokens that the model takes at most.
std::vector<ModelFile> wordpiece_model_files(const WordPieceFiles& files, std::size_t longest_input);

/// Throws where a vocabulary of `tokens` entries from `file` does not go with `vocab_size` embedding rows. Rows that
/// only pad the table to a multiple of 8, as NVIDIA's checkpoints have, may lack tokens.
void check_vocabulary_size(std::size_t vocab_size, std::size_t tokens, const std::filesystem::path& file);

/// The vocabulary in `directory`. Throws where it does not go with the model's `vocab_size` embedding rows.
Vocabulary load_vocabulary(const std::filesystem::path& directory, std::size_t vocab_size);

}  // namespace mylos::data
