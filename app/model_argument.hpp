#pragma once

#include "app/arguments.hpp"
#include "train/squad_windows.hpp"

namespace mylos::app {

/// Finds the directory that --model means, puts it into the arguments, and checks what was asked for against its
/// config.json. Errors: std::runtime_error where there is no such model; UsageError where a window is longer than it
/// has positions for. `notice` gets a line where the default is made to fit; without it, standard error.
void resolve_model_argument(Arguments& arguments, const train::Notice& notice);
void resolve_model_argument(Arguments& arguments);

}  // namespace mylos::app
