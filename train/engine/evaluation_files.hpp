#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

/// What a run keeps of each evaluation's answers: evaluations/<step>.json of its output directory, after so many steps.
/// What is in them is the task's matter.
namespace mylos::train {

inline constexpr const char* evaluations_name = "evaluations";

struct KeptEvaluation {
  std::size_t step = 0;
  std::filesystem::path file;
};

/// Those of the run in `directory`, in the order of steps; none where it has none, or they cannot be listed.
std::vector<KeptEvaluation> list_evaluations(const std::filesystem::path& directory);

/// Keeps `answers` of the evaluation after `step`. Errors: those of write_text.
void keep_evaluation(const std::filesystem::path& directory, std::size_t step, std::string_view answers);

/// Removes those that a run which goes on after `step` makes again: later ones and, where it begins with the evaluation
/// of `step`, that one.
void cut_evaluations(const std::filesystem::path& directory, std::size_t step, bool evaluation_due);

}  // namespace mylos::train
