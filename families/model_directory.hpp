#pragma once

#include <filesystem>
#include <string>

/// Resolves the argument of --model to a model directory, without network access.
namespace mylos::families {

/// Resolves `model` to a model directory. It is a directory with config.json, the output directory of a run (its best/
/// is used), or the name of a model in our cache or in Hugging Face's. With `checks_sums` a model in our cache is read
/// in full and must match its fetch record; when many processes read the same cache, one of them needs to do this.
/// Throws std::runtime_error with the locations searched and how to get the model.
std::filesystem::path resolve_model(const std::string& model, bool checks_sums = true);

}  // namespace mylos::families
