#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string_view>

#include "core/base/files/file_reader.hpp"
#include "data/tokenizer/tokenizer.hpp"

/// The files of a SentencePiece tokenizer in a model directory.
namespace mylos::families {

inline constexpr std::string_view sentencepiece_file = "tokenizer.model";
/// The file of transformers' fast tokenizers, and the only tokenizer file of newer Llamas. It is copied but not read.
inline constexpr std::string_view fast_tokenizer_file = "tokenizer.json";

/// The files that a directory of such a model may contain beside config.json and its weights.
inline constexpr std::array<std::string_view, 5> sentencepiece_files = {
    sentencepiece_file, fast_tokenizer_file, "tokenizer_config.json", "special_tokens_map.json",
    "generation_config.json"};

/// Reads tokenizer.model of a model directory. Returns null if there is none. Throws std::runtime_error with the file
/// if it cannot be read or has more pieces than the model's vocabulary; the model may have extra rows as padding.
std::unique_ptr<data::Tokenizer> load_sentencepiece(const FileReader& files, const std::filesystem::path& directory);

}  // namespace mylos::families
