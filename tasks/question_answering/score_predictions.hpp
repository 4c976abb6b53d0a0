#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"
#include "tasks/interface/run_config.hpp"

#include <filesystem>
#include <string>

namespace mylos::tasks {

/// Scores the predictions of the questions in `file` (a JSON object {question id: answer}) as the data's official
/// script does, and returns what it prints. `notice` gets a line on questions without a prediction. Errors: UsageError
/// where an option is of other rules than the data's; std::runtime_error naming a file that cannot be read.
std::string score_predictions(const std::filesystem::path& file, const std::filesystem::path& predictions,
                              const RunConfig& run, const OptionSources& sources, const Notice& notice);

}  // namespace mylos::tasks
