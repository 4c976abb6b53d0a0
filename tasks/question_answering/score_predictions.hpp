#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"
#include "tasks/interface/run_config.hpp"

#include <filesystem>
#include <string>

namespace mylos::tasks {

/// Scores `predictions`, a JSON file {question id: answer}, for the questions in `file`. Returns the text that the
/// official SQuAD script prints, for the version of the data or that of --squad. Calls `notice` with one line if
/// questions have no prediction. Errors: UsageError if an option applies only to another version of SQuAD;
/// std::runtime_error naming a file that cannot be read.
std::string score_predictions(const std::filesystem::path& file, const std::filesystem::path& predictions,
                              const RunConfig& run, const OptionSources& sources, const Notice& notice);

}  // namespace mylos::tasks
