#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// Resolves the argument of --model to a model directory, without network access.
namespace mylos::data {

/// Returns ${XDG_CACHE_HOME:-~/.cache}/mylos, the directory into which `mylos fetch` downloads.
std::filesystem::path cache_directory();
/// Returns the directory `name` in it; empty if neither XDG_CACHE_HOME nor HOME is set.
std::filesystem::path cache_folder(std::string_view name);
/// Returns why files cannot be written to the cache; empty if they can. Creates no directory.
std::string cache_obstacle();

/// Returns the cache directory of Hugging Face's datasets library, from the environment variables that it reads.
std::filesystem::path datasets_directory();

/// Returns the directory into which `mylos fetch NAME` downloads that model. Throws std::runtime_error if `name` is not
/// a model name.
std::filesystem::path cached_model_directory(std::string_view name);

/// True for names such as bert-base-uncased and google-bert/bert-base-uncased, false for text that can only be a path.
bool is_model_name(std::string_view name);

/// Resolves `model` to a model directory. It is a directory with config.json, the output directory of a run (its best/
/// is used), or the name of a model in our cache or in Hugging Face's. With `checks_sums` a model in our cache is read
/// in full and must match its fetch record; when many processes read the same cache, one of them needs to do this.
/// Throws std::runtime_error with the locations searched and how to get the model.
std::filesystem::path resolve_model(const std::string& model, bool checks_sums = true);

}  // namespace mylos::data
