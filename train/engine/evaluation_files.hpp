#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

/// Files with the answers of each evaluation: evaluations/<step>.json in the output directory, where <step> is the
/// number of completed steps. The task defines their contents. evaluations/best holds the step of the model in best/.
namespace mylos::train {

inline constexpr const char* evaluations_name = "evaluations";

struct KeptEvaluation {
  std::size_t step = 0;
  std::filesystem::path file;
};

/// Returns the evaluation files of the run in `directory`, ordered by step; empty if there are none or the directory
/// cannot be read.
std::vector<KeptEvaluation> list_evaluations(const std::filesystem::path& directory);

/// Writes the `answers` of the evaluation after `step`. Errors: those of write_text.
void keep_evaluation(const std::filesystem::path& directory, std::size_t step, std::string_view answers);

/// Notes that best/ is about to be replaced by the model after `step`. Errors: those of write_text.
void note_best(const std::filesystem::path& directory, std::size_t step);
/// Returns the last step noted; nullopt if there is none.
std::optional<std::size_t> noted_best(const std::filesystem::path& directory);

/// Removes the files that a run resumed after `step` writes again: those of later steps and, if the evaluation of
/// `step` is still due, that of `step`.
void cut_evaluations(const std::filesystem::path& directory, std::size_t step, bool evaluation_due);

}  // namespace mylos::train
