#pragma once

#include <filesystem>
#include <string>

#include "core/base/json.hpp"

/// Which family a model directory belongs to, as its config.json says.
namespace mylos::data {

/// The `model_type` of a configuration: "bert", "llama", "resnet", ... The original BERT releases have none and name
/// BERT in `architectures`, so they are "bert" too; timm's directories have `architecture`, "resnet50". Empty where the
/// configuration says neither. Throws std::runtime_error naming `file` and the value where model_type is not a string.
std::string model_type_of(const Json& config, const std::string& file);

/// The same for config.json of `directory`. Errors: std::runtime_error naming the file where it cannot be read or is
/// not a JSON object.
std::string model_type_of(const std::filesystem::path& directory);

}  // namespace mylos::data
