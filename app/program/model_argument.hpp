#pragma once

#include "app/options/arguments.hpp"
#include "app/options/commands.hpp"
#include "core/base/notice.hpp"

namespace mylos::app {

/// Finds the directory that --model means, or the name that the task trains without one, puts it into the arguments,
/// and fits the task's settings to it. Errors: std::runtime_error where there is no such model; UsageError where a
/// setting does not fit it. `notice` gets a line where a default is made to fit; without it, standard error.
void resolve_model_argument(Arguments& arguments, const Notice& notice);
void resolve_model_argument(Arguments& arguments);

/// For ask and eval, before resolve_model_argument: where --model is a run's output directory, takes the settings that
/// the task names (how samples are cut) from its run.json unless the command line gives them, and says so in a line.
/// Errors: UsageError where settings then do not go together; std::runtime_error where run.json cannot be read.
void take_run_settings(const Command& command, Arguments& arguments);

}  // namespace mylos::app
