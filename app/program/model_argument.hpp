#pragma once

#include "app/options/arguments.hpp"
#include "app/options/commands.hpp"
#include "core/base/files/file_reader.hpp"
#include "core/base/files/json.hpp"
#include "core/base/notice.hpp"
#include "core/base/text/standard_output.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace mylos::app {

/// Resolves --model to a directory, or to a name that the task trains without one, stores it in `arguments`, and adapts
/// the task's settings to the model. `notice` receives a line for each default that is adapted. Errors:
/// std::runtime_error if there is no such model; UsageError if a setting does not fit it.
void resolve_model_argument(const FileReader& files, Arguments& arguments, const Notice& notice = log_line);

/// Returns whether the chosen task serves `model`, a directory or the name of built-in sizes; false if no task is known
/// to. Errors: UsageError with the pairs of models and tasks that exist if another task does.
bool check_task(const FileReader& files, const Arguments& arguments, const std::filesystem::path& model);

/// For commands that write a model. Errors: std::runtime_error if `output` is there and not an empty directory.
void check_new_directory(const std::filesystem::path& output);

/// Takes from a run.json, which `file` names, the settings that options of `command` take from a run (their trait
/// from_run), unless given on the command line. Returns these as they would be typed. Errors: std::runtime_error if a
/// value is wrong.
std::string take_settings(std::string_view command, const Json& run, const std::string& file, Arguments& arguments);

/// For ask and eval, before resolve_model_argument: if --model is a run's output directory, takes the settings that the
/// task names (how samples are split) from its run.json, unless given on the command line, and logs one line about
/// them. Errors: UsageError if the settings then contradict each other; std::runtime_error if run.json cannot be read.
void take_run_settings(const Command& command, Arguments& arguments);

}  // namespace mylos::app
