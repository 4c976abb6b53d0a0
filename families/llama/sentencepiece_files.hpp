#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string_view>

#include "core/base/files/file_reader.hpp"
#include "data/tokenizer/tokenizer.hpp"
#include "families/interface/fast_tokenizer.hpp"

/// The files of a Llama's tokenizer in a model directory.
namespace mylos::families {

inline constexpr std::string_view sentencepiece_file = "tokenizer.model";

/// The files that a directory of such a model may contain beside config.json and its weights.
inline constexpr std::array<std::string_view, 6> sentencepiece_files = {
    sentencepiece_file,        fast_tokenizer_file,      "tokenizer_config.json",
    "special_tokens_map.json", "generation_config.json", "chat_template.jinja"};

/// Reads the tokenizer of a model directory from the file that transformers takes: tokenizer.json, or tokenizer.model
/// if there is no tokenizer.json or tokenizer_config.json says `use_fast` false. Returns null if there is none. Throws
/// std::runtime_error with the file if it cannot be read or has more tokens than the model's vocabulary; the model may
/// have extra rows as padding.
std::unique_ptr<data::Tokenizer> load_llama_tokenizer(const FileReader& files, const std::filesystem::path& directory);

}  // namespace mylos::families
