#pragma once

#include "app/options/arguments.hpp"

#include <cstddef>
#include <string>

/// Reconstructs the command line of a run, for typing it again.
namespace mylos::app {

/// Returns a line with the command that continues the interrupted run in the output directory: the typed command
/// without --overwrite, without peer options that have no effect, and without --resume if `goes_on` or if it was
/// "never".
std::string how_to_go_on(const Arguments& arguments, bool goes_on, std::size_t ranks);

}  // namespace mylos::app
