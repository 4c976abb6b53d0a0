#pragma once

#include <filesystem>

#include "data/huggingface/model_family.hpp"

/// The table of model families.
namespace mylos::data {

/// Returns the family named in config.json of `directory`. Throws std::runtime_error with the file, its model_type and
/// the supported families if there is no such family.
const ModelFamily& find_model_family(const std::filesystem::path& directory);

}  // namespace mylos::data
