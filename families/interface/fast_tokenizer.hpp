#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>

#include "core/base/files/file_reader.hpp"
#include "data/tokenizer/tokenizer.hpp"

/// The tokenizer.json of a model directory, beside or instead of the file that a family's own tokenizers have.
namespace mylos::families {

/// The file of transformers' fast tokenizers, and the only tokenizer file of newer models.
inline constexpr std::string_view fast_tokenizer_file = "tokenizer.json";

/// Returns whether the directory's tokenizer is read from its tokenizer.json, as transformers does if it is there, and
/// not from its file `other`. With both files, `use_fast` false in tokenizer_config.json chooses `other`.
bool reads_fast_tokenizer(const FileReader& files, const std::filesystem::path& directory, std::string_view other);

/// Reads tokenizer.json of a model directory. Throws std::runtime_error with the file and the field if it cannot be
/// read or has more tokens than the model, whose vocab_size is `vocabulary`.
std::unique_ptr<data::Tokenizer> load_fast_tokenizer(const FileReader& files, const std::filesystem::path& directory,
                                                     std::size_t vocabulary);

}  // namespace mylos::families
