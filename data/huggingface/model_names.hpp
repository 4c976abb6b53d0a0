#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// Names of models, and the caches in which they are kept.
namespace mylos::data {

/// Returns ${XDG_CACHE_HOME:-~/.cache}/mylos, the directory into which `mylos fetch` downloads.
std::filesystem::path cache_directory();
/// Returns the directory `name` in it; empty if neither XDG_CACHE_HOME nor HOME is set.
std::filesystem::path cache_folder(std::string_view name);
/// Returns why files cannot be written to the cache; empty if they can. Creates no directory.
std::string cache_obstacle();

/// Returns the cache directory of Hugging Face's datasets library, from the environment variables that it reads.
std::filesystem::path datasets_directory();

/// Returns the directory of huggingface_hub's snapshots, from the environment variables that it reads.
std::filesystem::path hub_directory();

/// The owner of the original BERTs on the hub, under whose names they are also known without it.
inline constexpr std::string_view original_bert_owner = "google-bert/";

/// Returns the directory into which `mylos fetch NAME` downloads that model. Throws std::runtime_error if `name` is not
/// a model name.
std::filesystem::path cached_model_directory(std::string_view name);

/// True for names such as bert-base-uncased and google-bert/bert-base-uncased, false for text that can only be a path.
bool is_model_name(std::string_view name);

}  // namespace mylos::data
