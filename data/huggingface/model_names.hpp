#pragma once

#include <filesystem>
#include <string>
#include <string_view>

/// From what a user types after --model to a model directory, without a network.
namespace mylos::data {

/// ${XDG_CACHE_HOME:-~/.cache}/mylos, where `mylos fetch` puts what it gets.
std::filesystem::path cache_directory();

/// Where Hugging Face's datasets keeps what it gets, by the variables that it reads.
std::filesystem::path datasets_directory();

/// Where `mylos fetch NAME` puts that model. Throws std::runtime_error where NAME is no model's name.
std::filesystem::path cached_model_directory(std::string_view name);

/// True for names such as bert-base-uncased and google-bert/bert-base-uncased, false for what can only be a path.
bool is_model_name(std::string_view name);

/// The model directory that `model` means: a directory with config.json, a run's output directory (its best/), or a
/// name in our cache or in Hugging Face's. With `checks_sums` one in our cache must be as it was fetched: all of it is
/// read, which is enough for one of many processes that read the same cache. Throws std::runtime_error listing where it
/// looked and how to get the model.
std::filesystem::path resolve_model(const std::string& model, bool checks_sums = true);

}  // namespace mylos::data
