#pragma once

#include "core/base/notice.hpp"
#include "tasks/interface/run_config.hpp"

#include <filesystem>

/// Questions cut into windows once, as a file.
namespace mylos::tasks {

/// Cuts the questions of `file` by the vocabulary of `run.task.model`, and writes the windows into `output`: as a
/// feature file where its name ends in .h5, else as a JSON object a line for people. `notice` gets the counts. Errors:
/// std::runtime_error naming the file.
void prepare_questions(const RunConfig& run, const std::filesystem::path& file, const std::filesystem::path& output,
                       const Notice& notice);

/// Whether prepare_questions wrote this file.
bool is_prepared_questions(const std::filesystem::path& file);

}  // namespace mylos::tasks
