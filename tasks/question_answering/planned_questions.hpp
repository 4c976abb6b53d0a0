#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"
#include "tasks/interface/planned_run.hpp"

#include <filesystem>
#include <string>

namespace mylos::tasks {

/// Plans a run of the model called `name` on the questions in `file` or, if that is empty, on as many full windows as
/// SQuAD v1.1 has. Built-in sizes need a directory only for the vocabulary that cuts questions. Errors:
/// std::runtime_error if a file or directory does not exist; UsageError as for fit_max_length.
PlannedRun plan_questions(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice);

}  // namespace mylos::tasks
