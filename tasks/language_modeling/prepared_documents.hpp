#pragma once

#include "core/base/notice.hpp"
#include "tasks/interface/run_config.hpp"

#include <filesystem>

/// Cuts documents into samples once and stores them in a file.
namespace mylos::tasks {

/// Cuts the documents of `file` with the tokenizer of `run.task.model`, and writes the samples to `output`: as a sample
/// file if its name ends in .h5, else as one JSON object per line. `notice` gets the counts. Errors: std::runtime_error
/// naming the file.
void prepare_documents(const RunConfig& run, const std::filesystem::path& file, const std::filesystem::path& output,
                       const Notice& notice);

/// Returns whether prepare_documents wrote this file.
bool is_prepared_documents(const std::filesystem::path& file);

}  // namespace mylos::tasks
