#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

/// Files with the answers of each evaluation: evaluations/<step>.json in the output directory, where <step> is the
/// number of completed steps. The task defines their contents.
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

/// Removes the files that a run resumed after `step` writes again: those of later steps and, if the evaluation of
/// `step` is still due, that of `step`.
void cut_evaluations(const std::filesystem::path& directory, std::size_t step, bool evaluation_due);

}  // namespace mylos::train
