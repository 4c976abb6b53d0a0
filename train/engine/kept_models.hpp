#pragma once

#include "train/engine/best_model.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

/// Directories of the best models of a run: best/ is the best one, and with --keep-best, best-<step>/ is each other
/// one.
namespace mylos::train {

/// Returns the name of the directory of the model after `step`, if it is not the best: "best-500".
std::string kept_model_name(std::size_t step);
bool is_kept_model_name(std::string_view name);

/// Gives the model in best/, after `step` steps, its own directory, too, before another replaces it. Its files are not
/// copied if the file system has hard links. Errors: std::runtime_error.
void keep_best_as(const std::filesystem::path& output, std::size_t step);

/// Removes the directories best-<step>/ of models that are not in `kept`, also those of an abandoned continuation of
/// the run. Errors: std::runtime_error.
void remove_other_models(const std::filesystem::path& output, std::span<const ScoredStep> kept);

}  // namespace mylos::train
