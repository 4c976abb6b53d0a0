#pragma once

#include <filesystem>

#include "data/huggingface/model_family.hpp"

/// The table of model families.
namespace mylos::families {

/// Returns the family named in config.json of `directory`. Throws std::runtime_error with the file, its model_type and
/// the supported families if there is no such family.
const data::ModelFamily& find_model_family(const std::filesystem::path& directory);

}  // namespace mylos::families
