#pragma once

#include <filesystem>
#include <string>

#include "core/base/files/file_reader.hpp"
#include "core/base/files/json.hpp"

/// The family of a model directory, from its config.json.
namespace mylos::data {

/// Returns the `model_type` of a configuration: "bert", "llama", "resnet", ... The original BERT releases have no
/// model_type and name BERT in `architectures`; they are "bert" too. timm's directories have `architecture` instead,
/// such as "resnet50". Empty if the configuration has neither. Throws std::runtime_error with `file` and the value if
/// model_type is not a string.
std::string model_type_of(const Json& config, const std::string& file);

/// Does the same for config.json of `directory`. Throws std::runtime_error with the file if it cannot be read or is not
/// a JSON object.
std::string model_type_of(const FileReader& files, const std::filesystem::path& directory);

/// Returns the first of the `architectures` of a configuration, "BertForMaskedLM"; empty if it names none.
std::string first_architecture(const Json& config);

}  // namespace mylos::data
