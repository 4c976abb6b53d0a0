#pragma once

#include "core/base/notice.hpp"
#include "tasks/interface/run_config.hpp"

#include <filesystem>

/// Cuts questions into windows once and stores them in a file.
namespace mylos::tasks {

/// Cuts the questions of `file` with the vocabulary of `run.task.model`, and writes the windows to `output`: as a
/// feature file if its name ends in .h5, else as one human-readable JSON object per line. `notice` gets the counts.
/// Errors: std::runtime_error naming the file.
void prepare_questions(const RunConfig& run, const std::filesystem::path& file, const std::filesystem::path& output,
                       const Notice& notice);

/// Returns whether prepare_questions wrote this file.
bool is_prepared_questions(const std::filesystem::path& file);

}  // namespace mylos::tasks
