#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"
#include "tasks/interface/planned_run.hpp"

#include <filesystem>
#include <string>

namespace mylos::tasks {

/// Plans a run of the model called `name` on the documents in `file` or, if that is empty, on a fixed number of full
/// samples. Built-in sizes need a directory only for the tokenizer that cuts documents. Errors: std::runtime_error if a
/// file or directory does not exist; UsageError as for fit_max_length.
PlannedRun plan_documents(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice);

}  // namespace mylos::tasks
