#pragma once

#include "core/base/notice.hpp"
#include "tasks/interface/run_config.hpp"

#include <filesystem>

/// Documents cut into samples once, as a file.
namespace mylos::tasks {

/// Cuts the documents of `file` by the tokenizer of `run.task.model`, and writes the samples into `output`: as a sample
/// file where its name ends in .h5, else as a JSON object a line. `notice` gets the counts. Errors: std::runtime_error
/// naming the file.
void prepare_documents(const RunConfig& run, const std::filesystem::path& file, const std::filesystem::path& output,
                       const Notice& notice);

/// Whether prepare_documents wrote this file.
bool is_prepared_documents(const std::filesystem::path& file);

}  // namespace mylos::tasks
