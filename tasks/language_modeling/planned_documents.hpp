#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"
#include "tasks/interface/planned_run.hpp"

#include <filesystem>
#include <string>

namespace mylos::tasks {

/// Limits --max-length to the positions of the model in `run.task.model`, which the user called `name`; the default is
/// adapted. Errors: UsageError if the user gave a longer length.
void fit_samples(RunConfig& run, const std::string& name, const OptionSources& sources, const Notice& notice);

/// Plans a run of the model called `name` on the documents in `file` or, if that is empty, on a fixed number of full
/// samples. Built-in sizes need a directory only for the tokenizer that cuts documents. Errors: std::runtime_error if a
/// file or directory does not exist; UsageError as for fit_samples.
PlannedRun plan_documents(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice);

}  // namespace mylos::tasks
