#pragma once

#include "app/options/arguments.hpp"
#include "app/options/commands.hpp"
#include "tasks/question_answering/squad_windows.hpp"

namespace mylos::app {

/// Finds the directory that --model means, puts it into the arguments, and checks what was asked for against its
/// config.json. Errors: std::runtime_error where there is no such model; UsageError where a window is longer than it
/// has positions for. `notice` gets a line where the default is made to fit; without it, standard error.
void resolve_model_argument(Arguments& arguments, const Notice& notice);
void resolve_model_argument(Arguments& arguments);

/// For ask and eval, before resolve_model_argument: where --model is a run's output directory, takes --max-length and
/// --doc-stride, and for ask --squad, from its run.json unless the command line gives them, and says so in a line.
/// Errors: UsageError where the windows that come of it cannot be cut; std::runtime_error where run.json cannot be
/// read.
void take_run_settings(const Command& command, Arguments& arguments);

}  // namespace mylos::app
