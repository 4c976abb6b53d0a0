#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/huggingface/pretrained.hpp"
#include "data/tokenizer/json/wordpiece.hpp"

/// The WordPiece files of a model directory: vocab.txt, tokenizer_config.json and tokenizer.json. Errors are
/// std::runtime_error with the file and the key.
namespace mylos::families {

/// The tokenizer files to copy into a written model, so that it tokenizes like its source. Kept in memory because the
/// source may be replaced in the meantime.
struct WordPieceFiles {
  std::string vocabulary;      ///< the bytes of vocab.txt; empty if there was none
  std::string tokenizer_json;  ///< the bytes of tokenizer.json; empty if there was none
  data::TokenizerOptions options;
};

inline constexpr std::string_view vocabulary_file = "vocab.txt";

/// Reads the options in tokenizer_config.json of `directory`. Returns the defaults if there is no such file.
data::TokenizerOptions read_tokenizer_options(const FileReader& files, const std::filesystem::path& directory);

WordPieceFiles read_wordpiece_files(const FileReader& files, const std::filesystem::path& directory);

/// Returns the tokenizer files of a model directory, including those that transformers requires. `longest_input` is the
/// maximum number of tokens per input.
std::vector<data::ModelFile> wordpiece_model_files(const WordPieceFiles& files, std::size_t longest_input);
/// Returns the same for a model made of `model`.
std::vector<data::ModelFile> wordpiece_model_files(const FileReader& files, const data::PretrainedModel& model);

/// Throws unless a vocabulary of `tokens` entries from `file` matches `vocab_size` embedding rows. Rows without a token
/// are accepted if they only pad the table to a multiple of 8, as in NVIDIA's checkpoints.
void check_vocabulary_size(std::size_t vocab_size, std::size_t tokens, const std::filesystem::path& file);

/// Returns the tokenizer of a model directory, from its tokenizer.json, as transformers does, or its vocab.txt if there
/// is no tokenizer.json or tokenizer_config.json says `use_fast` false. BERT's own tokenizer is the same from either
/// file. Throws if both are missing, or one does not match config.json.
std::unique_ptr<data::Tokenizer> load_wordpiece(const FileReader& files, const std::filesystem::path& directory);

}  // namespace mylos::families
