#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"
#include "tasks/interface/planned_run.hpp"

#include <filesystem>
#include <string>

namespace mylos::tasks {

/// Limits --max-length to the positions of the model in `run.task.model`, which the user called `name`; the default is
/// adapted as in run_qa. Errors: UsageError if the user gave a longer length.
void fit_windows(RunConfig& run, const std::string& name, const OptionSources& sources, const Notice& notice);

/// Plans a run of the model called `name` on the questions in `file` or, if that is empty, on as many full windows as
/// SQuAD v1.1 has. Built-in sizes need a directory only for the vocabulary that cuts questions. Errors:
/// std::runtime_error if a file or directory does not exist; UsageError as for fit_windows.
PlannedRun plan_questions(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice);

}  // namespace mylos::tasks
