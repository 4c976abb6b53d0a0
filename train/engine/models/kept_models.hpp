#pragma once

#include "train/engine/models/best_model.hpp"

#include <filesystem>

/// Directories of the best models of a run: best/ is the best one, and best-models/<step>/ each other one that
/// --keep-best keeps.
namespace mylos::train {

inline constexpr const char* kept_models_name = "best-models";

/// Returns the path in the output directory of the model after `step`, if it is not the best: "best-models/500".
std::filesystem::path kept_model_path(std::size_t step);

/// Gives the model in best/, after `step` steps, its own directory, too, before another replaces it. Its files are not
/// copied if the file system has hard links. Errors: std::runtime_error.
void keep_best_as(const std::filesystem::path& output, std::size_t step);

/// Removes the models in best-models/ that `state` does not keep there, also those of an abandoned continuation of the
/// run. Errors: std::runtime_error.
void remove_other_models(const std::filesystem::path& output, const BestModel::State& state);

}  // namespace mylos::train
