#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"
#include "tasks/interface/run_config.hpp"

#include <filesystem>
#include <string>

namespace mylos::tasks {

/// Scores predictions for the questions in `file` (a JSON object {question id: answer}) like the data's official
/// script, and returns the script's output. `notice` gets a line about questions without a prediction. Errors:
/// UsageError if an option belongs to other rules than the data's; std::runtime_error naming a file that cannot be
/// read.
std::string score_predictions(const std::filesystem::path& file, const std::filesystem::path& predictions,
                              const RunConfig& run, const OptionSources& sources, const Notice& notice);

}  // namespace mylos::tasks
